# From the package to a confined service. The seconds between a command and its next output are counted.
talks() { # COMMAND...: runs it, and says how long it took, and was silent at most
    local begun last=$EPOCHREALTIME most=0 silent before=begin after
    begun=$last
    while IFS= read -r line; do
        silent=$(((${EPOCHREALTIME/./} - ${last/./}) / 1000)); last=$EPOCHREALTIME
        [ $silent -gt $most ] && most=$silent && after=$before; [ -z "$line" ] || before=$line; echo "$line"
    done < <({ "$@" 2>&1; echo "exit status: $?"; } | stdbuf -o0 tr '\r' '\n')
    echo "took: $(((${EPOCHREALTIME/./} - ${begun/./}) / 1000)) ms, silent at most: $most ms: $*, after: $after"
}
systemctl is-system-running --wait
# The service, from a package of its own.
package() { # VERSION
    local root=/root/notes-$1
    mkdir -p $root/DEBIAN $root/opt/notes $root/lib/systemd/system
    printf 'Package: notes\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: notes\n' $1 >$root/DEBIAN/control
    cp /root/notes.py $root/opt/notes; echo "# $1" >>$root/opt/notes/notes.py
    cp /root/notes.service $root/lib/systemd/system; printf '[Install]\nWantedBy=multi-user.target\n' >>$root/lib/systemd/system/notes.service
    dpkg-deb --root-owner-group -b $root /root/notes_$1.deb
}
package 1 && package 2 && dpkg -i /root/notes_1.deb; echo secret >/root/secret
systemctl enable --now notes; ready; post

begun=$EPOCHREALTIME
talks apt-get install -y /root/tollgate.deb
systemctl enable --now --no-block tollgate
talks tollgate status --wait
echo "from the package to the first status: $(((${EPOCHREALTIME/./} - ${begun/./}) / 1000)) ms"
echo "kept by systemd: $(systemctl show -p NFileDescriptorStore --value tollgate)"
tollgate status | grep '^labels\|^failures'

python3 -m http.server 4444 --bind 127.0.0.1 >/dev/null 2>&1 & listener=$!; sleep 3
before=$(for act in $ACTS; do get /act/$act; done | grep -c ': done$'); echo "before: $before acts done"
rm -f /etc/cron.d/notes /usr/bin/notes; hostname tollgate; systemctl restart cron dbus nginx ssh postgresql@15-main notes; ready
(for i in 1 2 3; do sleep 8; post; get /; done; systemctl restart notes; ready; post; get /) >/dev/null 2>&1 &
tollgate service confine notes --yes --for 45s; echo "confine: $?"
 sed -i s/--permissive// /etc/default/tollgate; tollgate mode enforcing
systemctl restart notes; ready; post; get / | grep -q hello && echo "notes: kept"
for act in $ACTS; do get /act/$act; done
sleep 2; tollgate service list; tollgate status >/dev/null; echo "status: $?"
