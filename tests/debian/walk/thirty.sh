# Thirty services of packages, upgraded at once.
version() { # VERSION
    for i in $(seq 30); do
        root=/root/s$i-$1; mkdir -p $root/DEBIAN $root/usr/lib/s$i $root/lib/systemd/system; cp /bin/sleep $root/usr/lib/s$i/s$i
        printf 'Package: s%s\nVersion: %s\nArchitecture: amd64\nMaintainer: nobody <nobody@example.org>\nDescription: s\n' $i $1 >$root/DEBIAN/control
        printf '[Service]\nExecStart=/usr/lib/s%s/s%s 100000\n' $i $i >$root/lib/systemd/system/s$i.service
    done
    # Labels are written to files a moment after their creation; tar needs files that do not change meanwhile.
    sleep 3; sync
    for i in $(seq 30); do dpkg-deb --root-owner-group -Znone -b /root/s$i-$1 /root/v$1-s$i.deb >/dev/null; done
}
version 1; version 2; dpkg -i /root/v1-s*.deb >/dev/null
for i in $(seq 30); do
    printf '(block s%s (type t) (type exec_t) (call service (t exec_t lowest)))\n' $i; echo "/usr/lib/s$i/s$i -- system_u:object_r:s$i.exec_t:s0" >>/root/thirty.fc
done >/root/thirty.cil
tollgate policy install /root/thirty.cil /root/thirty.fc >/dev/null; echo "thirty: $?"
thirty() { systemctl daemon-reload; systemctl restart $(seq -f s%g 30); sleep 2; for i in $(seq 30); do in_domain s$i s$i.t && echo s$i; done | wc -l; }
echo "services confined: $(thirty)"; dpkg -i /root/v2-s*.deb >/dev/null; echo "services confined after the upgrade: $(thirty)"
tollgate status >/dev/null; echo "status of thirty: $?"
for i in $(seq 30); do [ "$(dpkg-query -W -f '${Version}' s$i)" = 2 ] || echo "s$i was not upgraded"; done
# The next boot has another policy.
cp /root/without /etc/tollgate/policy; tollgate status | grep '^next start'
