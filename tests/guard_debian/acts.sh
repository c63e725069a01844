# What Debian's privileged programs are for. `acts OLD NEW` does each once, and changes a password from OLD to NEW.

restart() { systemctl restart cron ssh opensmtpd lprng; }

# Run once before all.
set_up() {
    cat >/etc/smtpd.conf <<end
listen on localhost
action "local" maildir
match from local for local action "local"
end
    echo 'lp:sd=/var/spool/lpd/lp:lp=/var/spool/lpd/out:mx#0:sh:' >/etc/printcap
    mkdir -p /var/spool/lpd/lp /mnt/user
    : >/var/spool/lpd/out
    chown -R daemon /var/spool/lpd
    echo 'tmpfs /mnt/user tmpfs user,noauto 0 0' >>/etc/fstab
    runuser -u ann -- sh -c 'mkdir -m 700 ~ann/.ssh; ssh-keygen -q -N "" -f ~ann/.ssh/id_ed25519 -t ed25519
        cp ~ann/.ssh/id_ed25519.pub ~ann/.ssh/authorized_keys'
    # A service that the bus starts by its setuid helper, and not by systemd.
    mkdir -p /usr/local/share/dbus-1/system-services
    cat >/usr/local/share/dbus-1/system-services/org.freedesktop.hostname1.service <<end
[D-BUS Service]
Name=org.freedesktop.hostname1
Exec=/usr/lib/systemd/systemd-hostnamed
User=root
end
    systemctl reload dbus
    package 1
    dpkg -i /root/weekday_1.deb
}

# A package with a set-user-id program.
package() {
    local folder=/root/weekday_$1
    mkdir -p $folder/DEBIAN $folder/usr/bin
    printf 'Package: weekday\nVersion: %s\nArchitecture: all\nMaintainer: none\nDescription: none\n' "$1" >$folder/DEBIAN/control
    cp /usr/bin/cat $folder/usr/bin/weekday
    printf '%s' "$1" >>$folder/usr/bin/weekday
    chmod 4755 $folder/usr/bin/weekday
    dpkg-deb --build $folder /root/weekday_$1.deb >/dev/null
}

# Waits until a command succeeds, at most 60 s.
until_done() {
    local try
    for try in $(seq 300); do "$@" && return; sleep 0.2; done
    return 1
}

act_passwd() { printf '%s\n%s\n%s\n' "$1" "$2" "$2" | runuser -u ann -- passwd; }
act_su() { echo "$2" | runuser -u bob -- su ann -c 'test "$(id -un)" = ann'; }
act_sudo() { test "$(runuser -u bob -- sudo -n id -u)" = 0; }
act_ping() { runuser -u ann -- ping -c 1 127.0.0.1; }
act_mount() { runuser -u ann -- mount /mnt/user && runuser -u ann -- umount /mnt/user; }
act_cron() {
    rm -f /home/ann/cron
    echo '* * * * * touch /home/ann/cron' | runuser -u ann -- crontab - || return
    # The next minute is 5 s away.
    date -s "$(date +%H:%M):55" && systemctl restart cron && until_done test -e /home/ann/cron
}
act_mail() {
    rm -rf /home/ann/Maildir/new/*
    echo hello | runuser -u ann -- sendmail ann && until_done sh -c 'ls /home/ann/Maildir/new | grep .'
}
act_print() {
    : >/var/spool/lpd/out
    runuser -u ann -- lpr -Plp /etc/hosts && until_done test -s /var/spool/lpd/out
}
act_ssh() { runuser -u ann -- ssh -o StrictHostKeyChecking=no -o BatchMode=yes ann@localhost true; }
act_upgrade() {
    package "$3"
    apt-get -q -y install /root/weekday_$3.deb && echo yes | runuser -u ann -- weekday | grep yes
}
# Logins need the system's bus, so a second one shows how a bus starts. The service's process must be a new one of the first.
act_bus() {
    systemd-run --quiet --collect --unit second -p Type=forking -p TemporaryFileSystem=/run/dbus dbus-daemon --system || return
    nsenter -m -t "$(systemctl show -P MainPID second)" runuser -u ann -- \
        dbus-send --system --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetId || return
    systemctl stop second
    pkill -x systemd-hostnam
    until_done sh -c '! pgrep -x systemd-hostnam' || return
    runuser -u ann -- dbus-send --system --print-reply --dest=org.freedesktop.hostname1 /org/freedesktop/hostname1 \
        org.freedesktop.DBus.Properties.Get string:org.freedesktop.hostname1 string:StaticHostname | grep tollgate &&
        grep dbus.service "/proc/$(pgrep -x systemd-hostnam)/cgroup"
}

ACTS='passwd su sudo ping mount cron mail print ssh upgrade bus'

# Prints `act NAME STATUS`.
acts() {
    local act said status
    for act in $ACTS; do
        said=$(act_$act "$@" 2>&1)
        status=$?
        echo "act $act $status"
        [ $status = 0 ] || echo "$said" | tail -5
    done
}

on() {
    tollgate guard run >>/run/guard.log 2>&1 &
    until grep -q 'in force' /run/guard.log; do
        kill -0 $! 2>/dev/null || { cat /run/guard.log; exit 1; }
        sleep 0.5
    done
}

case $1 in
learn)
    set_up
    on
    tollgate guard mode daemon learn
    # Twice: what stops a daemon, and names that change, are seen the second time.
    restart
    acts secret Almanac-3-fern 2
    restart
    acts Almanac-3-fern Tolbooth-7-kiln 3
    sleep 3
    tollgate guard learn --write | grep '^#'
    for program in $(tollgate guard list | awk '$1 == "program" { print $2 }'); do
        tollgate guard mode "$program" enforce
    done
    tollgate guard list | sed 's/^/database /'
    ;;
enforce)
    set_up
    on
    tollgate guard load /database
    ;;
shipped)
    set_up
    on
    tollgate guard merge /sets/*
    ;;
esac
restart
echo enforced
[ $1 = learn ] && acts Tolbooth-7-kiln Harbour-9-moth 4 || acts secret Tolbooth-7-kiln 2
sleep 3
grep ' denied: ' /run/guard.log
tollgate guard status | sed 's/^/status /'
