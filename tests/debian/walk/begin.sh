# The beginning of each part of the walk.
ask() { timeout 20 bash -c "exec 3<>/dev/tcp/127.0.0.1/8085; printf '$1' >&3; sed '1,/^\r\$/d' <&3" 2>/dev/null; }
get() { ask "GET $1 HTTP/1.0\r\n\r\n"; }
post() { ask 'POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello'; }
ready() { for i in $(seq 30); do get / >/dev/null && return; sleep 1; done; return 1; }
told() { journalctl -u tollgate -o export --no-pager --cursor-file /root/cursor; }
# Whether all processes of a unit are in its domain.
in_domain() {
    local all own
    all=$(cat /sys/fs/cgroup/system.slice/$1.service/cgroup.procs | sort)
    own=$(tollgate ps --domain $2 --json | grep -o '"pid": *[0-9]*' | grep -o '[0-9]*$' | sort)
    [ "$all" ] && [ -z "$(comm -23 <(echo "$all") <(echo "$own"))" ]
}
# A way to lose it, which was just tried. Starts a service again, and prints the result: it is confined, or the loss was
# reported, in the journal and by `status`, this long after systemd had started it, or nothing was reported.
way() { # NAME [UNIT DOMAIN]
    local name=$1 unit=${2:-notes} domain=${3:-notes.t} began line at
    systemctl restart $unit 2>/dev/null
    [ $unit != notes ] || ready || true
    if in_domain $unit $domain; then echo "way $name: confined"; told >/dev/null; return; fi
    began=$(systemctl show -p ExecMainStartTimestampMonotonic --value $unit)
    for i in $(seq 40); do
        told >>/root/told
        line=$(grep -a "^MESSAGE=.*\($unit.service is not confined\|$unit.service cannot start\|is not the one that was in force\)" /root/told)
        [ "$line" ] && break; sleep 0.5
    done
    at=$(grep -a '^__MONOTONIC_TIMESTAMP=\|^MESSAGE=' /root/told | grep -a -B1 "$unit.service is not\|$unit.service cannot\|is not the one" |
        sed -n 's/^__MONOTONIC_TIMESTAMP=//p' | head -n 1)
    rm -f /root/told
    if [ -z "$line" ]; then echo "way $name: LOST"; tollgate service list; return; fi
    if tollgate status >/dev/null; then echo "way $name: LOST, for status says all is well"; return; fi
    # A unit that cannot start was reported when it could no longer.
    [ $at -gt $began ] || began=$at
    echo "way $name: told after $(((at - began) / 1000)) ms: $line"
}
