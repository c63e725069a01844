# Ways to lose it, after a reboot.
told >/dev/null
ready; in_domain notes notes.t && echo "way reboot: confined"
in_domain nginx httpd.t && echo "way reboot of a service that the policy knows: confined"
tollgate status >/dev/null; echo "status after the reboot: $?"
way "restart"
sed -i 's/keeps notes/keeps other notes/' /opt/notes/notes.py; way "sed -i of the script"
cp /opt/notes/notes.py /opt/notes/new; mv /opt/notes/new /opt/notes/notes.py; way "cp and mv of the script"
install -m 644 /root/notes.py /opt/notes/notes.py; way "install of the script"
dpkg -i /root/notes_2.deb >/dev/null; way "upgrade of the service"
dpkg -i /root/tollgate2.deb >/dev/null 2>&1; way "upgrade of tollgate"
unit=/etc/systemd/system/notes.service.d; mkdir -p $unit /srv/other; cp /opt/notes/notes.py /srv/other/other.py
printf '[Service]\nExecStart=\nExecStart=/usr/bin/python3 /srv/other/other.py\n' >$unit/way.conf; systemctl daemon-reload
way "another script in a drop-in"
printf '[Service]\nExecStart=\nExecStart=/bin/sh -c "exec /usr/bin/python3 /opt/notes/notes.py"\n' >$unit/way.conf; systemctl daemon-reload
systemctl restart notes; sleep 1; cat /sys/fs/cgroup/system.slice/notes.service/cgroup.procs | grep -q . || echo "way a shell around it: denied"
printf '[Service]\nExecStartPre=+/bin/sh -c "cat /etc/shadow >/run/stolen"\n' >$unit/way.conf; systemctl daemon-reload
systemctl restart notes; [ -s /run/stolen ] || echo "way ExecStartPre: denied"
rm -r $unit; systemctl daemon-reload; systemctl reset-failed notes
systemctl daemon-reexec; way "daemon-reexec"
echo '(no CIL' >/etc/tollgate/policy.d/broken.cil; tollgate policy rebuild; echo "rebuild: $?"; way "a broken module beside it"
rm /etc/tollgate/policy.d/broken.cil
kill -9 $(cat /run/tollgate/lock); way "the daemon killed"
tollgate status --wait >/dev/null
systemctl stop tollgate; systemctl restart notes; ready; way2=$(get /act/shadow); systemctl start tollgate; tollgate status --wait >/dev/null
echo "$way2" | grep -q 'Permission denied' && echo "way the daemon stopped: confined"
tollgate unit unset notes.service; way "the unit's context unset"; tollgate unit set notes.service system_u:system_r:notes.t:s0
mv /etc/tollgate/units /root/units; sleep 2; way "the file of units gone"; mv /root/units /etc/tollgate/units; sleep 2
cp /lib/systemd/system/notes.service /etc/systemd/system/others.service; systemctl daemon-reload; systemctl stop notes
way "another unit with the script" others; systemctl disable --now others 2>/dev/null; rm /etc/systemd/system/others.service; systemctl daemon-reload
way "back again"
cd /usr/share/tollgate/policy; tollgate policy build . --file-contexts file_contexts -o /root/without
tollgate reload /root/without >/dev/null; way "another policy"; tollgate reload /etc/tollgate/policy >/dev/null; way "that policy back"
# Programs that the policy knows by their labels.
cp /usr/sbin/nginx /root/nginx; cp /usr/sbin/nginx /usr/sbin/new; mv /usr/sbin/new /usr/sbin/nginx; way "cp and mv of nginx" nginx httpd.t
install -m 755 /root/nginx /usr/sbin/nginx; way "install of nginx" nginx httpd.t
tar -C / -cf /root/backup.tar usr/sbin/nginx; tar -C / -xf /root/backup.tar; way "a backup of nginx, without attributes" nginx httpd.t
tollgate label set system_u:object_r:bin_t:s0 /usr/sbin/nginx >/dev/null; way "another label of nginx" nginx httpd.t
tollgate label restore /usr/sbin/nginx >/dev/null
systemctl stop tollgate; cp /usr/sbin/nginx /usr/sbin/new; mv /usr/sbin/new /usr/sbin/nginx; systemctl restart nginx; told >/dev/null
systemctl start tollgate; tollgate status --wait >/dev/null; sleep 2; told | grep -aq 'nginx.service is not confined' && ! tollgate status >/dev/null &&
    echo "way nginx replaced while no daemon ran: told by the next"
tollgate label restore /usr/sbin/nginx >/dev/null; way "its label restored" nginx httpd.t
repack() { # PACKAGE: its files as they are, as a newer version
    local root=/root/repack-$1; mkdir -p $root/DEBIAN
    dpkg-query -L $1 | while read -r path; do [ -d "$path" ] && [ ! -L "$path" ] || echo "${path#/}"; done | tar -C / -cf - -T - | tar -C $root -xf -
    sleep 3; sync
    dpkg-query -s $1 | grep -v '^Status\|^Conffiles\|^ /\|^Config-Version' | sed 's/^Version: .*/&+way/' >$root/DEBIAN/control
    dpkg-deb --root-owner-group -Znone -b $root /root/$1-next.deb
}
nginx=$(dpkg -S /usr/sbin/nginx | cut -d: -f1); repack $nginx >/dev/null; dpkg --force-confold -i /root/$nginx-next.deb; way "upgrade of nginx" nginx httpd.t
