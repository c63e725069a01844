systemctl is-system-running --wait >/dev/null
python3 -c 'import signal, socket
listener = socket.socket(socket.AF_UNIX); listener.bind("/run/engine.sock"); listener.listen(9); signal.pause()' &
all='for one in list(process["capabilities"]): process["capabilities"][one] = ["CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE", "CAP_SYS_PTRACE", "CAP_SYS_CHROOT"]
bind("/", "/host")'

phase() {
    bundle b 'process["args"] = ["/usr/bin/python3.11", "/acts.py", "serve", "b", "4711"]; bind("/srv/volume", "/volume")'
    up b; await test -e /var/lib/containers/c/b/rootfs/ready; process=$(process_of b)
    bundle a "bind('/var/lib/containers/c/b/rootfs', '/other'); bind('/etc/shadow', '/shadow'); bind('/srv/volume', '/volume')
process['args'] = ['/usr/bin/python3.11', '/acts.py'] + '''read-secret=/other/secret read-shadow=/shadow write-new=/other/new
    kill=$process ptrace=$process read-environ=/proc/$process/environ connect=/other/sock abstract=b send=/other/datagrams
    shm=4711 sem=4711 msg=4711 write-volume=/volume/word write-own=/own read-own=/own write-dev=/dev/shm/own'''.split()"
    acts a "$1 a"
    bundle privileged "$all
process['args'] = ['/usr/bin/python3.11', '/acts.py'] + '''read-shadow=/host/etc/shadow write-cron=/host/etc/cron.d/act mount=/tmp
    connect=/host/run/engine.sock run=/host/usr/bin/python3.11 move=/host/sys/fs/cgroup/cgroup.procs'''.split()"
    acts privileged "$1 privileged"
}
mkdir -p /srv/volume
phase without; down b; umount /var/lib/containers/c/*/rootfs; rm -rf /var/lib/containers/c /etc/cron.d/act; ipcrm --all

dpkg -i /root/tollgate.deb >/dev/null 2>&1; : >/etc/default/tollgate
systemctl enable --now tollgate 2>/dev/null; echo "mode: $(tollgate mode)"
tollgate label set -R system_u:object_r:container_file_t:s0 /srv/volume >/dev/null
wrapper="tollgate container runtime"
phase with >/root/with; cat /root/with
[ $(grep -c '^with a \(write-own\|read-own\|write-dev\): done' /root/with) = 3 ] && echo "own: done"
grep -q '^with a write-volume: done' /root/with && runc exec b cat /volume/word </dev/null | grep -q written && echo "volume: done"

context() { tollgate ps | awk -v process=$1 '$4 == process { print $1 }'; }
runc exec --detach --pid-file /run/exec b sleep 1000 </dev/null > >(cat) 2>&1
[ "$(context $(cat /run/exec))" = "$(context $(process_of b))" ] && context $(cat /run/exec) | grep -q container_t && echo "exec: the container's"
bundle p "$all
process['args'] = ['/bin/sleep', '1000']"
up p; context $(process_of p) | grep -q ':container_t:s0:c[0-9]*,c[0-9]*$' && echo "privileged is container_t"
tollgate container list; echo "apart: $(tollgate container list | awk '{ print $2 }' | sort -u | wc -l) levels"
tollgate audit | tail -n 40

tollgate container list >/root/before; systemctl stop tollgate
bundle d 'process["args"] = ["/bin/sh", "-c", ">/started"]'
runc run --bundle /var/lib/containers/c/d d </dev/null && echo "dead: started" || echo "dead: refused"
[ -e /var/lib/containers/c/d/rootfs/started ] || echo "dead: nothing started"
systemctl start tollgate; tollgate container list | cmp - /root/before && echo "back: kept"
down b; down p; await sh -c '! tollgate container list | grep -q .'; echo "left: $(tollgate container list | wc -l)"
