//! `tollgate service confine` on a Debian system: services of five kinds, and one of them in an attacker's hands.

use super::{
    guest::{Guest, copy},
    installed::said,
    packages,
    system::services_image,
};
use crate::program::Scratch;

/// What an attacker who has taken the service over tries, and it never does by itself.
pub(super) const ACTS: [&str; 14] = [
    "shell", "program", "connect", "bind", "shadow", "home", "database", "cron", "code", "programs", "kill", "raw",
    "name", "policy",
];

/// What each test begins with: the package's policy in force, enforcing; and the service, used by `use_notes`.
const BEGIN: &str = r#"
ask() { exec 3<>/dev/tcp/127.0.0.1/8085 || return; printf "$1" >&3; sed '1,/^\r$/d' <&3; exec 3>&-; }
get() { ask "GET $1 HTTP/1.0\r\n\r\n"; }
post() { ask 'POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello'; }
ready() { for i in $(seq 60); do (get /) >/dev/null 2>&1 && return; sleep 1; done; echo "no answer"; }
systemctl is-system-running --wait >/dev/null
dpkg -i /root/tollgate.deb >/dev/null 2>&1; : >/etc/default/tollgate
systemctl enable --now tollgate 2>/dev/null; echo "mode: $(tollgate mode)"
mkdir -p /opt/notes; cp /root/notes.py /opt/notes; cp /root/notes.service /etc/systemd/system; echo secret >/root/secret
mkdir -p /var/lib/notes; : >/var/lib/notes/notes
systemctl daemon-reload; systemctl start notes; ready
"#;

/// The service confined by one command, and asked for each act; before, all of them were done.
const CONFINE: &str = r#"
before=$(for act in $ACTS; do get /act/$act; done | grep -c ': done$'); echo "before: $before"
rm -f /etc/cron.d/notes /usr/bin/notes; hostname tollgate; systemctl restart cron notes; ready
(sleep 10; ready; post; get /; systemctl restart notes; ready; post; get /) >/dev/null 2>&1 &
tollgate service confine notes --yes --for 60s; echo "confined: $?"
ready; post
for act in $ACTS; do get /act/$act; done
echo "domain: $(tollgate ps --domain notes.t | grep -c notes.py)"
tollgate service confine notes; echo "again: $?"
systemctl restart notes; ready; echo "notes: $(get / | grep -c hello)"
tollgate audit --domain notes.t | tail -n 40
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
    said(&output, &["mode: enforcing", "confined: 0", "again: 0", "domain: 1", "unconfined: 0", "shell: done"]);
    let acts: Vec<String> = ACTS.iter().map(|act| format!("{act}: ")).collect();
    let after = output.split_once("confined: 0").unwrap().1.split_once("domain: ").unwrap().0;
    for act in acts {
        let line = after.lines().find(|line| line.starts_with(&act));
        let denied = line.is_some_and(|line| line.contains("Permission denied") || line.contains("not permitted"));
        assert!(denied, "{act}{line:?}");
    }
}

/// Each of the five by at most six commands; what it does then is denied nothing.
const FIVE: &str = r#"
denied() { sleep 2; echo "$1 denied: $(tollgate audit --domain $2 --since "$since" --json 2>/dev/null | grep -c '"verdict":"denied"')"; }
begin() { since=$(date -u +%Y-%m-%dT%H:%M:%SZ); }
in_domain() { echo "$1 in $2: $(tollgate ps --domain $2 | tail -n +2 | grep -c .)"; }

(sleep 10; ready; post; get /) >/dev/null 2>&1 &
tollgate service confine notes --yes --for 40s; echo "notes: $?"
begin; systemctl restart notes; ready; post; in_domain notes notes.t; denied notes notes.t

scrape() { exec 3<>/dev/tcp/127.0.0.1/9100 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && cat <&3; exec 3>&-; }
systemctl restart prometheus-node-exporter; sleep 5
(for i in 1 2 3 4 5 6; do sleep 8; scrape; done) >/dev/null 2>&1 &
tollgate service confine prometheus-node-exporter --yes --for 60s; echo "exporter: $?"
begin; systemctl restart prometheus-node-exporter; sleep 10; scrape | grep -c '^node_' ; sleep 5
in_domain exporter prometheus_node_exporter.t; denied exporter prometheus_node_exporter.t

begin; tollgate service confine nginx; echo "nginx: $?"
exec 3<>/dev/tcp/127.0.0.1/80; printf 'GET / HTTP/1.0\r\n\r\n' >&3; echo "page: $(head -n 1 <&3)"; exec 3>&-
in_domain nginx httpd.t; denied nginx httpd.t

begin; tollgate service confine postgresql@15-main; echo "postgresql: $?"
echo "row: $(su postgres -c "psql -Atc 'select 6*7'")"; in_domain postgresql db.t; denied postgresql db.t

printf '#!/bin/sh\nprintf "%%s\\n" "$(uptime)" >>/var/log/report.log\n' >/usr/local/sbin/report; chmod 755 /usr/local/sbin/report
echo '* * * * * root /usr/local/sbin/report' >/etc/cron.d/report; chmod 644 /etc/cron.d/report
tollgate service confine /usr/local/sbin/report --yes --for 130s; echo "report: $?"
begin; rm -f /var/log/report.log; sleep 130; echo "lines: $(($(wc -l </var/log/report.log) > 0))"; denied report report.t
"#;

#[test]
fn confines_services_of_five_kinds_each_by_one_command() {
    let output = run(FIVE);
    for name in ["notes", "exporter", "nginx", "postgresql", "report"] {
        said(&output, &[&format!("{name}: 0"), &format!("{name} denied: 0")]);
    }
    said(&output, &["row: 42", "page: HTTP/1.1 200 OK\r", "lines: 1"]);
    for nobody in ["notes in notes.t: 0", "nginx in httpd.t: 0", "postgresql in db.t: 0"] {
        assert!(!output.lines().any(|line| line == nobody), "{nobody}");
    }
}
