//! The package on a machine: installed, enabled, upgraded, enforcing, removed and purged.

use super::{
    guest::{Guest, copy},
    packages,
    system::image,
};
use crate::program::Scratch;

/// Checks lines of the machine's output.
#[track_caller]
pub(crate) fn said(output: &str, expected: &[&str]) {
    for line in expected {
        assert!(output.lines().any(|own| own == *line), "{line:?} is not in:\n{output}");
    }
}

/// With Tollgate's own policy: nothing is enforced until the unit is enabled; then enforcement starts with the machine,
/// survives upgrades, denies once the administrator sets it to, and ends with the package.
#[test]
fn enforces_from_the_package_and_leaves_a_machine_that_works() {
    let (scratch, image) = (Scratch::new(), image());
    let disk = copy(&scratch, &image);
    let [first, second] = ["0.1.0", "0.1.1"]
        .map(|version| packages::make(&scratch, version, version).join(format!("tollgate_{version}_amd64.deb")));
    let boot = || Guest::new(&scratch, "6.1", "bpf").option(&["--keep-disk"]);
    let run = |guest: Guest<'_>, script: &str| {
        let output = guest.run(&disk, &["/bin/bash", "-c", script]);
        println!("{output}");
        output
    };
    let works = ["machine: running", "ssh: active", "cron: active"];
    let installed = run(boot().with(&first, "/root/1.deb").with(&second, "/root/2.deb"), INSTALL);
    said(&installed, &["unit: disabled", "status: 1", "policy: 0", "unit: enabled"]);
    let upgraded = run(boot(), &format!("{WORKS}{UPGRADE}"));
    said(&upgraded, &works);
    said(&upgraded, &["unit: active", "mode: permissive", "same programs: taken over"]);
    said(&upgraded, &["policy: improved, in force and kept", "somebody's own: as it was"]);
    said(&upgraded, &["other programs: the old daemon goes on", "by hand: the new one", "unit after all: active"]);
    let enforced = run(boot(), &format!("{WORKS}{ENFORCED}"));
    said(&enforced, &works);
    said(&enforced, &["unit: active", "mode: enforcing", "login: ann", "session: registered"]);
    said(&enforced, &["job: done", "denied: nothing"]);
    said(&enforced, &["removed: 0", "enforced: nothing", "ssh after all: active"]);
    let after = run(boot(), &format!("{WORKS}{PURGE}"));
    said(&after, &works);
    said(&after, &["unit: none", "purged: 0", "left: nothing"]);
}

/// Checks whether the machine works.
const WORKS: &str = r#"
echo "machine: $(systemctl is-system-running --wait)"; systemctl --failed --no-pager --no-legend
echo "ssh: $(systemctl is-active ssh)"; echo "cron: $(systemctl is-active cron)"
"#;

const INSTALL: &str = r#"
dpkg -i /root/1.deb; echo "unit: $(systemctl is-enabled tollgate)"
tollgate status; echo "status: $?"
tollgate policy stats /etc/tollgate/policy >/dev/null; echo "policy: $?"
systemctl enable tollgate; echo "unit: $(systemctl is-enabled tollgate)"
"#;

const UPGRADE: &str = r#"
daemon() { cat /run/tollgate/lock; }
pins=/sys/fs/bpf/tollgate
echo "unit: $(systemctl is-active tollgate)"; echo "mode: $(tollgate mode)"
# As if the new version had more to build of.
echo '(type more_t)' >/etc/tollgate/policy.d/more.cil
before=$(daemon); dpkg -i /root/2.deb
[ $(daemon) != $before ] && [ -d /proc/$(daemon) ] && echo "same programs: taken over"
tollgate policy list | grep -q '^more  built in$' && tollgate status | tee /dev/stderr | grep -q '^next start *the same policy$' &&
    echo "policy: improved, in force and kept"
# A policy of other sources; and as if the programs that are attached were others.
cp /etc/tollgate/policy /root/kept; echo '(type own_t)' >/root/own.cil; cd /usr/share/tollgate/policy
tollgate policy build . /root/own.cil --file-contexts file_contexts -o /etc/tollgate/policy; cp /etc/tollgate/policy /root/own
before=$(daemon); mv $pins/build/* $pins/build/then
dpkg -i /root/1.deb >/root/said 2>&1; cat /root/said
grep -q 'the old version goes on enforcing' /root/said &&
    [ $(daemon) = $before ] && [ -d /proc/$before ] && [ $(tollgate mode) = permissive ] &&
    echo "other programs: the old daemon goes on"
grep -q '/etc/tollgate/policy stays as it was' /root/said && cmp /root/own /etc/tollgate/policy &&
    echo "somebody's own: as it was"
cp /root/kept /etc/tollgate/policy
tollgate stop --force && systemctl restart tollgate.service && [ $(daemon) != $before ] && echo "by hand: the new one"
echo "unit after all: $(systemctl is-active tollgate)"
# From the next start on it denies (docs/debian.md).
sed -i s/--permissive// /etc/default/tollgate
"#;

const ENFORCED: &str = r#"
echo "unit: $(systemctl is-active tollgate)"; echo "mode: $(tollgate mode)"
mkdir -p /home/ann/.ssh; ssh-keygen -q -t ed25519 -N '' -f /root/key; cp /root/key.pub /home/ann/.ssh/authorized_keys
chown -R ann: /home/ann/.ssh; chmod 700 /home/ann/.ssh
ssh -i /root/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null ann@127.0.0.1 \
    'echo "login: $(id -un)"; [ "$XDG_SESSION_ID" ] && echo "session: registered"'
echo '* * * * * root touch /run/cron-was-here' >/etc/cron.d/act; chmod 644 /etc/cron.d/act
for i in $(seq 100); do [ -e /run/cron-was-here ] && break; sleep 1; done
[ -e /run/cron-was-here ] && echo "job: done"; rm /etc/cron.d/act
denied=$(tollgate audit --json | grep '"verdict":"denied"')
[ "$denied" ] && echo "$denied" || echo "denied: nothing"
dpkg -r tollgate; echo "removed: $?"
[ ! -e /sys/fs/bpf/tollgate ] && ! pgrep -x tollgate && echo "enforced: nothing"
systemctl restart ssh; echo "ssh after all: $(systemctl is-active ssh)"
"#;

const PURGE: &str = r#"
systemctl cat tollgate >/dev/null 2>&1 || echo "unit: none"
dpkg --purge tollgate; echo "purged: $?"
# The agent is the guest's, not the package's.
left=$(find / -xdev -path '*tollgate*' -not -path '/root/*' -not -path '/var/lib/dpkg/*' -not -path '/var/log/journal/*' \
    -not -name tollgate-agent)
[ "$left" ] && echo "$left" || echo "left: nothing"
"#;
