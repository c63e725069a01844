# Functions for the commands of the documents in guests. Each command is run by `line`, which prints its output and
# its exit status.
set -o pipefail
cd /root

# A page of the service, and the service until it answers.
get() { exec 3<>/dev/tcp/127.0.0.1/8085 && printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3 && sed '1,/^\r$/d' <&3; exec 3>&-; }
ready() { for _ in $(seq 90); do (get /) 2>/dev/null | grep -q . && return; sleep 1; done; echo "the service does not answer"; }
# Uses the service: while it learns, and again when it is confined and nothing is denied to it.
use() {
    for _ in $(seq 120); do tollgate ps --confined | grep -q web.py && break; sleep 1; done
    sleep 15; ready; systemctl reload-or-restart web; ready; (get /); (get /); sleep 3
} >/dev/null 2>&1

# The service `web`, which runs: by the program that it is, or by Python.
web() { # PROGRAM
    install -D -m 755 /root/web.py /opt/web/web.py; echo welcome >/opt/web/page; echo secret >/root/secret
    printf '[Service]\nExecStart=%s\nStateDirectory=web\n' "$1" >/etc/systemd/system/web.service
    systemctl daemon-reload; systemctl start web; ready
}

# The package, and its policy in force: permissive, as it is installed.
installed() {
    dpkg -i /root/tollgate_*.deb >/root/installed 2>&1 && systemctl enable --now tollgate >>/root/installed 2>&1 ||
        cat /root/installed
}

# Debian's packages in /root/debs, as apt finds them on a mirror; the same for the private apt.
mirror() {
    mkdir -p /root/mirror/dists/bookworm/main/binary-amd64; cd /root/mirror; mv /root/debs .
    list=dists/bookworm/main/binary-amd64/Packages
    for deb in debs/*.deb; do
        dpkg-deb -f "$deb"; echo "Filename: $deb"; echo "Size: $(stat -c %s "$deb")"; echo "SHA256: $(digest "$deb")"; echo
    done >$list
    printf 'Suite: oldstable\nCodename: bookworm\nComponents: main\nArchitectures: amd64\nDate: %s\nSHA256:\n %s %s %s\n' \
        "$(date -uR)" "$(digest $list)" "$(stat -c %s $list)" main/binary-amd64/Packages >dists/bookworm/Release
    echo 'deb [trusted=yes] file:/root/mirror bookworm main' >/etc/apt/sources.list; rm -f /etc/apt/sources.list.d/*
    apt-get -q update
    private=/root/.cache/tollgate/apt
    mkdir -p $private/etc/preferences.d $private/etc/apt.conf.d $private/state/lists/partial $private/cache/archives/partial
    cp /etc/apt/sources.list $private/etc; : >$private/state/status
    printf 'Dir::Etc "%s/etc";\nDir::State "%s/state";\nDir::State::status "%s/state/status";\nDir::Cache "%s/cache";\n' \
        $private $private $private $private >$private/apt.conf
    echo 'APT::Sandbox::User "root"; Acquire::Languages "none";' >>$private/apt.conf
    APT_CONFIG=$private/apt.conf apt-get -q update && touch $private/updated; cd /root
} >/root/mirror.log 2>&1
digest() { sha256sum <"$1" | cut -d' ' -f1; }

# How a line is run: `plain` by this shell; `endless` until it is interrupted; on a `terminal`, which types the input.
line() { # NUMBER HOW COMMAND
    echo "@ $1"
    case $2 in
        plain) eval "$3" </dev/null ;;
        endless) timeout -s INT 10 bash -c "$3" </dev/null ;;
        terminal) script -qefc "$3" /dev/null ;;
    esac >/root/said 2>&1
    said=$?; cat /root/said; printf '\n@= %s\n' $said
}
