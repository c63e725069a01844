# Runs the parts of tests/enforcer_processes.rs in a guest; the output of each part stands below its name.
grep -q ' /sys/fs/bpf ' /proc/mounts || mount -t bpf none /sys/fs/bpf
mkdir -p /run /var/log /place
mount -t tmpfs none /place
cd /place
mkdir lower upper inner merged mine jail
cp /act act && cp /act work && cp /act jail/act
printf '#!/place/act secure\n' > script
chmod +x script
for file in secret plain lower/file lower/secret lower/other; do echo text > $file; done

tollgate enforce /policy || exit 3
object=system_u:object_r system=system_u:system_r
tollgate label set $object:work_exec_t:s0 work script || exit 4
tollgate label set $object:secret_t:s0 secret lower/secret || exit 4
tollgate label set $object:layer_t:s0 inner || exit 4

keeper() { tollgate run --context $system:keeper_t:s0 -- "$@" 2>&1; }
officer() { tollgate run --context $system:officer_t:s0 -- "$@" 2>&1; }
worked() { tollgate run --context $system:worked_t:s0 -- "$@" 2>&1; }
enter() { keeper ./act thread "$@"; }
wary() { tollgate run --context $system:wary_t:s0 -- "$@" 2>&1; }
try() { "$@" > /dev/null 2>&1 && echo done || echo denied; }
daemon=$(cat /run/tollgate/lock)
links=/sys/fs/bpf/tollgate/links

echo '== read'
./act read secret; keeper ./act read secret; ./work read secret; worked ./act read secret
echo '== thread'
enter ./work read secret; enter ./act read secret
echo '== script'
enter ./script; keeper ./script
echo '== secure'
enter ./work secure; enter ./act secure; ./work secure
echo '== storm'
enter ./work storm 40 secret; keeper ./act storm 40 secret; ./work storm 40 secret
echo '== freed credentials'
# Credentials of the machine take the place of theirs: each of these processes opens a file with its own.
worked ./act storm 200 plain
opened() { if [ $1 = 10 ]; then wary ./act read plain; else (eval "exec $1< plain"; opened $(($1 + 1))); fi; }
for attempt in $(seq 20); do opened 3; done | sort | uniq -c
echo '== daemon'
keeper ./act kill $daemon; keeper ./act trace $daemon; keeper ./act limit $daemon; try keeper renice -n 5 -p $daemon
echo '== other'
sleep 1000 &
keeper ./act kill $!; keeper ./act trace $!; keeper ./act limit $!; try keeper renice -n 5 -p $!
echo '== maps'
keeper ./act maps; officer ./act maps; ./act maps
echo '== programs'
keeper ./act programs; officer ./act programs; ./act programs
echo '== pins'
try keeper rm $links/task_kill; try keeper mv /sys/fs/bpf/tollgate /sys/fs/bpf/other
try keeper umount -l /sys/fs/bpf; try keeper tollgate stop; try ls $links/task_kill
echo '== overlay'
mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=inner merged
try worked sh -c 'echo more >> merged/file'; try worked sh -c 'echo new > merged/new'
try worked sh -c 'echo new > inner/new'; try worked sh -c 'cat < merged/secret'
echo '== mounted by worked'
try worked mount -t overlay none -o lowerdir=lower:jail mine
keeper ./act read mine/other; keeper ./act read lower/secret; keeper ./act read mine/secret
echo '== own ring'
./act ring tollgate run --context $system:worked_t:s0 -- ./act open_by_ring plain
./act ring tollgate run --context $system:worked_t:s0 -- ./act open_by_ring secret
echo '== ring of the machine'
./act ring tollgate run --context $system:worked_t:s0 -- ./act open_by_ring plain personality
./act ring tollgate run --context $system:worked_t:s0 -- ./act open_by_ring secret personality
echo '== ring of worked'
worked ./act ring tollgate run --context $system:officer_t:s0 -- ./act open_by_ring secret
worked ./act ring tollgate run --context $system:officer_t:s0 -- ./act open_by_ring plain personality
worked ./act ring tollgate run --context $system:officer_t:s0 -- ./act open_by_ring secret personality
echo '== mixed'
./act mixed $system:worked_t:s0 secret
echo '== enter'
keeper ./act enter $system:keeper_t:s0; keeper ./act enter $system:keeper_t:s0 plain
echo '== limits'
tollgate status | grep failures
echo '== officer'
try officer rm $links/task_getsid; try ls $links/task_getsid
officer ./act kill $daemon; try officer kill -9 $daemon
sleep 1
./work read secret
echo '== successor'
tollgate enforce /policy --foreground 2> /dev/null & daemon=$!
until tollgate mode > /dev/null 2>&1; do sleep 0.1; done
kill -9 $daemon; wait $daemon 2> /dev/null
./act impersonate $daemon plain
echo '== end'
