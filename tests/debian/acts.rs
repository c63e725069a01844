//! The same boot and the same acts under SELinux and under Tollgate, by Debian's policy: what is denied, side by side.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::Deserialize;
use serde_json::Value;

use super::{
    guest::{Guest, copy},
    packages,
    system::{image, policy},
};
use crate::program::{Scratch, report};

/// An administrator's shell.
const SHELL: &str = "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023";
/// PID 1 and what runs before the unit: services leave its domain as they do under SELinux.
const OPTIONS: &str = "--machine system_u:system_r:init_t:s0";
/// Services that run before the unit is started again, and are in their domains then (docs/debian.md).
const DROP_IN: &str =
    "[Service]\nExecStartPost=-systemctl --no-block try-restart systemd-journald systemd-udevd systemd-timesyncd\n";

/// A file of acts.
#[derive(Deserialize)]
struct Acts {
    /// The beginning of the script, before the acts.
    before: String,
    act: Vec<Act>,
    #[serde(default)]
    extra: Vec<Extra>,
}

/// One act: a shell line.
#[derive(Deserialize)]
struct Act {
    name: String,
    line: String,
    /// The confined domain that does the act, if one does.
    #[serde(default)]
    #[allow(dead_code, reason = "for who reads the file")]
    domain: String,
    /// Whether the output must be the same under both.
    #[serde(default)]
    same: bool,
}

/// A denial that only Tollgate makes, and its reason.
#[derive(Deserialize)]
struct Extra {
    denied: String,
    reason: String,
}

/// A denial in the form of an `allow` rule with one permission: `sshd_t shadow_t:file read`.
type Denials = BTreeSet<String>;

/// The results of a boot.
struct Played {
    /// The exit status of each act, and what it printed.
    acts: BTreeMap<String, (i32, String)>,
    denied: Denials,
}

fn acts() -> Acts {
    toml::from_str(include_str!("acts.toml")).unwrap()
}

/// The acts as one script, which ends with the denials as `denials` prints them.
fn script(Acts { before, act: acts, .. }: &Acts, denials: &str) -> String {
    let act = |act: &Act| {
        let Act { name, line, .. } = act;
        format!("echo '@ {name}'\ntimeout 200 bash -c \"$(cat <<'ACT'\n{line}\nACT\n)\" 2>&1\necho \"@= $?\"\n")
    };
    let acts: String = acts.iter().map(act).collect();
    format!("{before}{acts}echo '@ denials'\n{denials} 2>&1\necho '@= 0'\n")
}

/// The output of a guest's script, step by step.
fn played(output: &str, denials_in: fn(&str) -> Denials) -> Played {
    let (mut acts, mut name, mut text) = (BTreeMap::new(), String::new(), String::new());
    for line in output.lines() {
        if let Some(code) = line.strip_prefix("@= ") {
            acts.insert(std::mem::take(&mut name), (code.parse().unwrap(), std::mem::take(&mut text)));
        } else if let Some(next) = line.strip_prefix("@ ") {
            name = next.to_owned();
        } else {
            text += &format!("{line}\n");
        }
    }
    let (_, denials) = acts.remove("denials").unwrap_or_else(|| panic!("{name} did not end:\n{output}"));
    Played { acts, denied: denials_in(&denials) }
}

/// The denials in records as SELinux writes them: `avc:  denied  { read open } for ... scontext=... tcontext=... tclass=file`.
fn denied(records: &str) -> Denials {
    let field = |line: &str, name: &str| {
        let rest = line.split_once(&format!(" {name}="))?.1;
        rest.split([' ', '\'']).next().map(str::to_owned)
    };
    let one = |line: &str| {
        let permissions = line.split_once("denied  { ")?.1.split_once(" }")?.0;
        let of = |name| Some(field(line, name)?.split(':').nth(2)?.to_owned());
        let (source, target, class) = (of("scontext")?, of("tcontext")?, field(line, "tclass")?);
        Some(permissions.split(' ').map(|name| format!("{source} {target}:{class} {name}")).collect::<Vec<_>>())
    };
    records.lines().filter_map(one).flatten().collect()
}

/// The denials in `tollgate audit --json`.
fn audited(entries: &str) -> Denials {
    let one = |line: &str| {
        let entry: Value = serde_json::from_str(line).ok()?;
        let of = |name: &str| Some(entry[name].as_str()?.split(':').nth(2)?.to_owned());
        let (source, target, class) = (of("scontext")?, of("tcontext")?, entry["tclass"].as_str()?.to_owned());
        let permissions = entry["permissions"].as_array().filter(|_| entry["verdict"] == "denied")?.clone();
        let names = permissions.into_iter().filter_map(|name| Some(name.as_str()?.to_owned()));
        Some(names.map(move |name| format!("{source} {target}:{class} {name}")).collect::<Vec<_>>())
    };
    entries.lines().filter_map(one).flatten().collect()
}

/// Under the kernel's SELinux.
fn by_selinux(scratch: &Scratch, image: &Path, kernel: &str, acts: &Acts) -> Played {
    let script = scratch.file("acts", &script(acts, "dmesg | grep avc:"));
    let guest = Guest::new(scratch, kernel, "selinux").with(&script, "/root/acts.sh").option(&["--context", SHELL]);
    played(&guest.run(image, &["/bin/bash", "/root/acts.sh"]), denied)
}

/// Under Tollgate, which is installed from its package, and starts with the machine.
fn by_tollgate(scratch: &Scratch, image: &Path, kernel: &str, acts: &Acts) -> Played {
    let disk = copy(scratch, image);
    let options = scratch.file("options", &format!("TOLLGATE_OPTIONS=\"{OPTIONS}\"\n"));
    let dropin = scratch.file("dropin", DROP_IN);
    let package = packages::make(scratch, "0.1.0", "packages").join("tollgate_0.1.0_amd64.deb");
    Guest::new(scratch, kernel, "bpf")
        .with(&package, "/root/tollgate.deb")
        .with(&policy(scratch), "/etc/tollgate/policy")
        .with(&options, "/etc/default/tollgate")
        .with(&dropin, "/etc/systemd/system/tollgate.service.d/restart.conf")
        .option(&["--keep-disk"])
        .run(&disk, &["/bin/bash", "-ec", "dpkg -i /root/tollgate.deb; systemctl enable tollgate"]);
    let script = scratch.file("acts", &script(acts, "tollgate audit --json"));
    let run = format!("exec tollgate run --context {SHELL} -- bash /root/acts.sh");
    let guest = Guest::new(scratch, kernel, "bpf").with(&script, "/root/acts.sh");
    played(&guest.run(&disk, &["/bin/bash", "-c", &run]), audited)
}

/// The acts under both, side by side. Each denial that only Tollgate makes has its reason in tests/debian/acts.toml.
#[test]
fn denies_a_debian_system_what_selinux_denies_it() {
    let (scratch, image, acts) = (Scratch::new(), image(), acts());
    let selinux = by_selinux(&scratch, &image, "6.1", &acts);
    let tollgate = by_tollgate(&scratch, &image, "6.1", &acts);
    println!("{:<45} SELinux Tollgate", "act");
    for Act { name, .. } in &acts.act {
        println!("{name:<45} {:>7} {:>8}", selinux.acts[name].0, tollgate.acts[name].0);
    }
    let all: Denials = selinux.denied.union(&tollgate.denied).cloned().collect();
    for denial in &all {
        let mark = |by: &Played| if by.denied.contains(denial) { "denied" } else { "-" };
        println!("{denial:<70} {:>7} {:>8}", mark(&selinux), mark(&tollgate));
    }
    let extra: Vec<&String> = tollgate.denied.difference(&selinux.denied).collect();
    report("denials that only Tollgate makes", &extra.len().to_string(), "0", extra.is_empty());
    let wrong: Vec<String> = acts.act.iter().filter_map(|act| differs(act, &selinux, &tollgate)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let secret = "httpd_t shadow_t:file read".to_owned();
    assert!(selinux.denied.contains(&secret) && tollgate.denied.contains(&secret), "{secret} is not denied by both");
    for denial in extra {
        let listed = acts.extra.iter().find(|listed| listed.denied == *denial);
        let reason =
            listed.map(|listed| &listed.reason).unwrap_or_else(|| panic!("{denial}: only Tollgate, and no reason"));
        println!("{denial}: {reason}");
    }
}

/// What is wrong with an act: it has failed, or the results differ and must not.
fn differs(Act { name, same, .. }: &Act, selinux: &Played, tollgate: &Played) -> Option<String> {
    let [one, other] = [selinux, tollgate].map(|by| &by.acts[name]);
    let right = (one.0, other.0) == (0, 0) && (!same || one.1 == other.1);
    (!right).then(|| format!("{name}: SELinux {}\n{}Tollgate {}\n{}", one.0, one.1, other.0, other.1))
}
