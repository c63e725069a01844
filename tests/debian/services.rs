//! `tollgate service confine` on a Debian system: services of five kinds, and one of them under an attacker's control.

use super::{
    guest::{Guest, copy},
    installed::said,
    packages,
    system::services_image,
};
use crate::program::Scratch;

/// Acts of an attacker who has taken the service over, which it never does by itself.
pub(super) const ACTS: [&str; 14] = [
    "shell", "program", "connect", "bind", "shadow", "home", "database", "cron", "code", "programs", "kill", "raw",
    "name", "policy",
];

/// The beginning of each test: the package's policy in force, enforcing; and functions that use the service.
const BEGIN: &str = r#"
# ask PORT REQUEST: the answer, with its head; a service that hangs does not answer.
ask() { timeout 20 bash -c 'exec 3<>/dev/tcp/127.0.0.1/$0 && printf "$1" >&3 && cat <&3' "$1" "$2"; }
notes() { ask 8085 "$1" | sed '1,/^\r$/d'; }
get() { notes "GET $1 HTTP/1.0\r\n\r\n"; }
post() { notes 'POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello'; }
begin() { since=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ); }
denied() { sleep 2; echo "$1 denied: $(tollgate audit --domain $2 --since "$since" --json | grep -c '"verdict":"denied"')"
    tollgate audit --domain $2 --since "$since" | tail -n 20; }
in_domain() { echo "$1 in $2: $(tollgate ps --domain $2 | tail -n +2 | grep -c .)"; }
up() { for i in $(seq 60); do ask $1 'GET / HTTP/1.0\r\n\r\n' >/dev/null 2>&1 && return; sleep 1; done; echo "no answer"; }
ready() { up 8085; }
systemctl is-system-running --wait >/dev/null
dpkg -i /root/tollgate.deb >/dev/null 2>&1; : >/etc/default/tollgate
systemctl enable --now tollgate 2>/dev/null; echo "mode: $(tollgate mode)"
mkdir -p /opt/notes; cp /root/notes.py /opt/notes; cp /root/notes.service /etc/systemd/system; echo secret >/root/secret
mkdir -p /var/lib/notes; : >/var/lib/notes/notes
systemctl daemon-reload; systemctl start notes; ready
"#;

/// The service is confined by one command, and then does each act on request; before, all of them succeeded.
const CONFINE: &str = r#"
python3 -c 'import socket
listener = socket.create_server(("127.0.0.1", 4444))
while True: listener.accept()' &
before=$(for act in $ACTS; do get /act/$act; done | grep -c ': done$'); echo "before: $before"
rm -f /etc/cron.d/notes /usr/bin/notes; hostname tollgate; systemctl restart cron notes; ready
(sleep 10; ready; post; get /; systemctl restart notes; ready; post; get /) >/dev/null 2>&1 &
tollgate service confine notes --yes --for 60s; echo "confined: $?"
ready; post; begin
for act in $ACTS; do get /act/$act; done
echo "domain: $(tollgate ps --domain notes.t | grep -c notes.py)"
denied acts notes.t
tollgate service confine notes; echo "again: $?"
begin; systemctl restart notes; ready; echo "notes: $(get / | grep -c hello)"; denied notes notes.t
tollgate service unconfine notes; echo "unconfined: $?"; ready; get /act/shell
"#;

/// The service, and its unit.
pub(super) const NOTES: &str = include_str!("services/notes.py");
pub(super) const UNIT: &str = include_str!("services/notes.service");

fn guest<'g>(scratch: &'g Scratch, notes: &std::path::Path, unit: &std::path::Path) -> Guest<'g> {
    let package = packages::make(scratch, "0.1.0", "package").join("tollgate_0.1.0_amd64.deb");
    Guest::new(scratch, "6.1", "bpf")
        .with(&package, "/root/tollgate.deb")
        .with(notes, "/root/notes.py")
        .with(unit, "/root/notes.service")
}

fn run(script: &str) -> String {
    let scratch = Scratch::new();
    let disk = copy(&scratch, &services_image());
    let notes = scratch.file("notes.py", NOTES);
    let unit = scratch.file("notes.service", UNIT);
    let script = format!("ACTS='{}'\n{BEGIN}{script}", ACTS.join(" "));
    let output = guest(&scratch, &notes, &unit).run(&disk, &["/bin/bash", "-c", &script]);
    println!("{output}");
    output
}

#[test]
fn confines_a_python_service_by_one_command_and_denies_what_it_never_did() {
    let output = run(CONFINE);
    said(&output, &["mode: enforcing", "before: 14", "confined: 0", "domain: 1", "again: 0", "notes denied: 0"]);
    said(&output, &["unconfined: 0", "shell: done"]);
    let after = output.split_once("confined: 0").unwrap().1.split_once("domain: ").unwrap().0;
    for act in ACTS {
        let line = after.lines().find(|line| line.starts_with(&format!("{act}: ")));
        let denied = line.is_some_and(|line| line.contains("Permission denied") || line.contains("not permitted"));
        assert!(denied, "{act}: {line:?}");
    }
    // Nothing else prevented the acts: the log has each denial.
    let logged = output.lines().find_map(|line| line.strip_prefix("acts denied: ")?.parse().ok());
    assert!(logged.is_some_and(|logged: usize| logged >= ACTS.len()), "{logged:?}");
}

/// Each of the five is confined by one command; nothing that it does then is denied.
const FIVE: &str = r#"
seconds() { echo "$1: $2, after $((SECONDS - began)) s"; }

began=$SECONDS; (sleep 10; ready; post; get /) >/dev/null 2>&1 &
tollgate service confine notes --yes --for 40s; seconds notes $?
begin; systemctl restart notes; ready; post; echo "kept: $(get / | grep -c hello)"; in_domain notes notes.t; denied notes notes.t

metrics() { echo "metrics: $(ask 9100 'GET /metrics HTTP/1.0\r\n\r\n' | grep -c '^node_')"; }
scrape() { for i in $(seq $1); do metrics; sleep 4; done; }
began=$SECONDS; (sleep 20; scrape 12) >/dev/null 2>&1 &
tollgate service confine prometheus-node-exporter --yes --for 60s; seconds exporter $?
wait; begin; systemctl restart prometheus-node-exporter; up 9100; scrape 6
in_domain exporter prometheus_node_exporter.t; denied exporter prometheus_node_exporter.t

began=$SECONDS; tollgate service confine nginx; seconds nginx $?
begin; systemctl restart nginx; systemctl reload nginx; sleep 2
echo "page: $(ask 80 'GET / HTTP/1.0\r\n\r\n' | head -n 1)"; in_domain nginx httpd.t; denied nginx httpd.t

began=$SECONDS; tollgate service confine postgresql@15-main; seconds postgresql $?
begin; systemctl restart postgresql@15-main; systemctl reload postgresql@15-main; cd /
sql() { timeout 60 su postgres -c "psql -Atc \"$1\""; }
sql 'create table numbers as select generate_series(1, 1000) as n'; sql 'vacuum analyze numbers'; sql 'checkpoint'
echo "row: $(sql 'select count(*) - 958 from numbers')"; in_domain postgresql db.t; denied postgresql db.t

printf '#!/bin/sh\nprintf "%%s\\n" "$(uptime)" >>/var/log/report.log\n' >/usr/local/sbin/report; chmod 755 /usr/local/sbin/report
echo '* * * * * root /usr/local/sbin/report' >/etc/cron.d/report; chmod 644 /etc/cron.d/report
began=$SECONDS; tollgate service confine /usr/local/sbin/report --yes --for 80s; seconds report $?
begin; rm -f /var/log/report.log; sleep 80
[ -s /var/log/report.log ] && echo "line: written"; denied report report.t
"#;

#[test]
fn confines_services_of_five_kinds_each_by_one_command() {
    let output = run(FIVE);
    for name in ["notes", "exporter", "nginx", "postgresql", "report"] {
        let confined = output.lines().any(|line| line.starts_with(&format!("{name}: 0, after ")));
        assert!(confined, "{name}");
        said(&output, &[&format!("{name} denied: 0")]);
    }
    said(&output, &["row: 42", "page: HTTP/1.1 200 OK", "line: written"]);
    for nobody in ["notes in notes.t: 0", "nginx in httpd.t: 0", "postgresql in db.t: 0", "kept: 0", "metrics: 0"] {
        assert!(!output.lines().any(|line| line == nobody), "{nobody}");
    }
    said(&output, &["exporter in prometheus_node_exporter.t: 1"]);
}
