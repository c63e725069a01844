//! The daemon: its start and what can be missing, its death and the next daemon, and what that one keeps.
//!
//! QEMU, kernels and a C compiler are needed: without them these tests fail, and say so.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::{fs::MetadataExt, net::UnixDatagram},
    process::Command,
    time::Duration,
};

use tollgate_client::Client;

#[cfg(feature = "long")]
use crate::program::report_time;
use crate::program::{
    Scratch,
    inside::{Guests, is_guest, name, sh},
    machine::{build, own_parts, policy, source},
    steps::Guest,
    word,
};

/// Waits until the daemon is gone: its process stays as a zombie, because nothing reaps it in a guest.
const GONE: &str = "while tollgate mode; do sleep 0.2; done >/dev/null 2>&1";
/// The users of a guest.
const USERS: &str = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n";

#[test]
fn enforces_without_its_daemon_and_a_new_one_takes_over() {
    let scratch = Scratch::new();
    let denied = "as visitor calls setcon $(at changer)";
    let steps = Guest::new(&scratch, "6.1")
        .with_library()
        .with(&scratch.file("passwd", USERS), "/etc/passwd")
        .step("enforce", "tollgate enforce /policy && tollgate label set $(of one) /tmp ")
        .step("locked", "sh -c \"trap '' TERM; tollgate run --context $(at visitor) -- sh -c 'while :; do sleep 1; done'\" & sleep 1; pid=$!")
        .step("killed", &format!("kill -9 $(daemon); {GONE}; tollgate status"))
        .step("on", "cat /proc/$pid/comm; tollgate mode; calls getcon; calls getpidcon $pid")
        .step("ps", "tollgate ps --domain visitor")
        .step("nobody's ps", "su nobody -c 'tollgate ps'")
        .step("nobody's getcon", "su nobody -c 'calls getcon'")
        .step("relabelled by nobody", "as visitor true")
        .step("stop without force", "tollgate stop")
        .step("taken over", "tollgate enforce /policy && tollgate status --json")
        .step("same label", "tollgate label get /tmp; tollgate ps --domain visitor | grep -c while")
        .step("denied", denied)
        // In hundredths of a second of processor time.
        .step(
            "idle",
            "used() { set -- $(cut -d' ' -f14,15 /proc/$(daemon)/stat); echo $(($1 + $2)); }
            for i in 1 2 3 4 5 6 7 8; do tollgate label set $(of one) /tmp; done
            before=$(used); sleep 5; echo $(($(used) - before))",
        )
        .step("terminated", &format!("kill -TERM $(daemon); {GONE}; tollgate status; tail -1 /var/log/tollgate/daemon.log"))
        .step("foreground", "NOTIFY_SOCKET=/nowhere tollgate enforce --foreground /policy & while ! tollgate mode; do sleep 0.2; done 2>/dev/null")
        .step("hung up", "kill -HUP $(daemon); sleep 3; tollgate status --json | grep '\"generation\"'")
        .step(
            "own domain",
            "as keeper sh -c 'sleep 3; exec tollgate enforce --foreground /policy' & sleep 2; old=$(daemon); kill -9 $old
            while [ $(daemon) = $old ] || ! tollgate mode; do sleep 0.2; done 2>/dev/null; tollgate ps --domain keeper
            tollgate reload /policy",
        )
        .step("gone", &format!("kill -9 $(daemon); {GONE}"))
        .step("another policy", "cp /other /tmp/own; cd /tmp; tollgate enforce own && tollgate status --json; cd /")
        .step("elsewhere", "readlink /proc/$(daemon)/cwd; kill -HUP $(daemon); sleep 3; tollgate status --json | grep '\"generation\"'")
        .step("forced", &format!("kill -9 $(daemon); {GONE}; tollgate stop --force; tollgate status; ls /sys/fs/bpf"))
        .with(&policy(&scratch, "other", &[source("tests/enforcer/policy.cil"), scratch.file("more.cil", "(type more)\n")]), "/other")
        .run();
    steps["enforce"].is(0, &[]);
    steps["killed"].is(0, &["programs are attached, enforcement goes on", "none: denials are not logged"]);
    steps["on"].is(
        0,
        &["no daemon answers", "getcon: system_u:system_r:unconfined_t", "getpidcon: system_u:system_r:visitor:"],
    );
    steps["ps"].is(0, &["no daemon answers", ":visitor:", "while :"]);
    let remedy = "start it with `tollgate enforce POLICY`";
    steps["nobody's ps"].is(2, &["no daemon answers", remedy]);
    steps["nobody's getcon"].is(1, &["no daemon answers", remedy, "maps/tasks cannot be read: Permission denied"]);
    steps["relabelled by nobody"].is(2, &["no daemon answers"]);
    steps["stop without force"].is(2, &["tollgate stop --force"]);
    let status = steps["taken over"].is(0, &[]).json();
    assert_eq!((&status["mode"], &status["generation"]), (&"enforcing".into(), &1.into()), "{status}");
    steps["same label"].is(0, &["system_u:object_r:one:s0 /tmp\n"]);
    steps["denied"].is(1, &["errno 13", "process setcurrent"]);
    let used: u32 = steps["idle"].is(0, &[]).text.trim().parse().unwrap();
    assert!(used < 250, "an idle daemon has used {used} hundredths of a second in five seconds");
    steps["terminated"].is(0, &["enforcement goes on", "the daemon ends"]);
    steps["foreground"].is(0, &["enforcing", "cannot report that the daemon is ready"]);
    steps["hung up"].is(0, &["\"generation\": 2"]);
    steps["own domain"].is(0, &["tollgate enforce --foreground /policy\n", "generation 3 is in force"]);
    let status = steps["another policy"].is(0, &[]).json();
    assert_eq!((&status["policy"], &status["generation"]), (&"/tmp/own".into(), &4.into()), "{status}");
    steps["elsewhere"].is(0, &["/\n", "\"generation\": 5"]);
    assert!(!steps["forced"].is(0, &["nothing is enforced"]).text.contains("tollgate\n"), "{:?}", steps["forced"]);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn attaches_programs_that_were_loaded_before_and_loads_what_lacks() {
    let scratch = Scratch::new();
    let steps = Guest::new(&scratch, "6.1")
        .with_library()
        .step("preload", "tollgate preload; tollgate status; ls /sys/fs/bpf/tollgate/links")
        .step(
            "enforce",
            "cd /sys/fs/bpf/tollgate; rm programs/task_prctl; tollgate enforce /policy; ls; ls links; ls links >/tmp/links; cd /",
        )
        .step("denied", "as visitor calls setcon $(at changer)")
        .step("again", "tollgate preload")
        .step("anew", "tollgate stop; tollgate enforce /policy; ls /sys/fs/bpf/tollgate/links | diff - /tmp/links")
        .run();
    let preloaded = steps["preload"].is(0, &[" programs are loaded", "nothing is enforced"]);
    assert!(!preloaded.text.contains("file_open"), "{preloaded:?}");
    let enforced = steps["enforce"].is(0, &["inquiries", "links", "file_open", "task_prctl"]);
    assert!(!enforced.text.contains("programs\n"), "{enforced:?}");
    steps["denied"].is(1, &["errno 13", "process setcurrent"]);
    steps["again"].is(2, &["a policy is in force"]);
    steps["anew"].is(0, &[]);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_what_it_was_told_when_a_new_one_takes_over() {
    let scratch = Scratch::new();
    let more = scratch.file("more.cil", "(type more)\n");
    let other = policy(&scratch, "other", &[source("tests/enforcer/policy.cil"), more]);
    let own = "--unconfined kernel_t --unconfined keeper --machine $(at keeper)";
    let storm = "as visitor sh -c 'for i in 1 2 3 4 5 6 7 8 9; do : </secret; done 2>/dev/null'";
    let limited = "tollgate status --json | grep 'above the limit'";
    let told = "tollgate status --json; tollgate ps >&2";
    let steps = Guest::new(&scratch, "6.1")
        .with(&other, "/other")
        .step(
            "enforce",
            &format!("tollgate enforce /policy {own} --descriptors use --audit-limit 1 --permissive && {told}"),
        )
        .step("next", &format!("kill -9 $(daemon); {GONE}; tollgate enforce /policy && {told}"))
        .step("limit", &format!("echo >/secret; tollgate label set $(of three) /secret; {storm}; {limited}"))
        .step("reload", &format!("tollgate reload /other >&2 && {told}"))
        .step(
            "changed",
            &format!(
                "kill -9 $(daemon); {GONE}; tollgate enforce /other --unconfined kernel_t --audit-limit 100 && {told}"
            ),
        )
        .step("no limit", &format!("{limited} >/before; {storm}; {limited} >/after; cmp /before /after"))
        .step("no context", &format!("kill -9 $(daemon); {GONE}; tollgate enforce /other --machine $(at nobody)"))
        .step("other way", "tollgate enforce /other --descriptors check")
        .run();
    for (step, generation, unconfined) in [
        ("enforce", 1, &["kernel_t", "keeper"][..]),
        ("next", 1, &["kernel_t", "keeper"]),
        ("reload", 2, &["kernel_t", "keeper"]),
        ("changed", 3, &["kernel_t"]),
    ] {
        let text = &steps[step].is(0, &[]).text;
        let status = &text[text.find('{').unwrap()..text.find("CONTEXT").unwrap()];
        let status: serde_json::Value = serde_json::from_str(status).unwrap();
        assert_eq!(
            (&status["generation"], &status["mode"]),
            (&generation.into(), &"permissive".into()),
            "{step}: {status}"
        );
        assert_eq!(status["unconfined"], serde_json::json!(unconfined), "{step}");
        assert_eq!(status["descriptors"], "use", "{step}");
        assert_eq!(status["policy"], if generation == 1 { "/policy" } else { "/other" }, "{step}");
        let mode = if unconfined.contains(&"keeper") { "unconfined" } else { "permissive" };
        steps[step].is(0, &[&format!("\nsystem_u:system_r:keeper:s0-s15:c0.c1023 {mode} root       1 ")]);
    }
    steps["limit"].is(0, &["event above the limit"]);
    steps["no limit"].is(0, &[]);
    steps["no context"].is(2, &["nobody"]);
    steps["other way"].is(2, &["it was started with --descriptors use", "tollgate stop"]);
}

#[test]
fn gives_initial_sids_the_contexts_of_the_policy_in_force() {
    let scratch = Scratch::new();
    let base = std::fs::read_to_string(source("policies/tollgate/30-base.cil")).unwrap();
    assert!(base.contains("unlabeled_t"));
    let base = scratch.file("base.cil", &base.replace("unlabeled_t", "nowhere_t"));
    let mut files = own_parts();
    files.retain(|file| !file.ends_with("30-base.cil"));
    files.extend([base, source("tests/enforcer/policy.cil")]);
    let other = build(&scratch, "other", &files, &[]);
    let unlabelled = "grep '^3 ' /run/tollgate/contexts; as visitor cat /nowhere; tollgate status --json";
    let steps = Guest::new(&scratch, "6.1")
        .with(&other, "/other")
        .step("enforce", "tollgate enforce /policy; echo nowhere >/nowhere; tollgate label set system_u:object_r:unlabeled_t:s0 /nowhere")
        .step("before", unlabelled)
        .step("after", &format!("tollgate reload /other; {unlabelled}"))
        .step("restarted", &format!("kill -9 $(daemon); {GONE}; rm /run/tollgate/contexts; tollgate enforce /other; {unlabelled}"))
        .run();
    steps["before"].is(0, &["3 system_u:object_r:unlabeled_t:", "nowhere\n", "\"failures\": {}"]);
    for step in ["after", "restarted"] {
        // A file without a known label is as secret as possible, and no failure.
        steps[step].is(0, &["3 system_u:object_r:nowhere_t:", "Permission denied", "\"failures\": {}"]);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn says_what_a_machine_lacks_to_be_enforced() {
    let scratch = Scratch::new();
    let unmet = Guest::new(&scratch, "6.1").lsm("yama,apparmor").step("enforce", "tollgate enforce /policy").run();
    unmet["enforce"].is(2, &["add lsm=lockdown,yama,apparmor,bpf to its command line"]);
    // The kernel has BPF LSM, and lacks what the programs call.
    let old = Guest::new(&scratch, "5.10").step("enforce", "tollgate enforce /policy").run();
    old["enforce"].is(2, &["Linux 5.10.0-", "too old to enforce", "6.1 or later"]);

    let reject = std::fs::read_to_string(source("tests/policies/small.cil")).unwrap();
    let reject = scratch.file("reject.cil", &reject.replace("(handleunknown allow)", "(handleunknown reject)"));
    let built = build(&scratch, "reject", &[reject], &[]);
    let users = scratch.file("passwd", USERS);
    let pins = "/sys/fs/bpf/tollgate";
    let steps = Guest::new(&scratch, "6.1")
        .with(&built, "/reject")
        .with(&users, "/etc/passwd")
        // Removes the programs that the machine was saved with.
        .lines("tollgate stop --force\n")
        .step("not root", "su nobody -c 'tollgate enforce /policy'")
        .step(
            "no types",
            "mount -t tmpfs none /sys/kernel/btf; tollgate enforce /policy; s=$?; umount /sys/kernel/btf; (exit $s)",
        )
        .step("refused", "tollgate enforce /reject; s=$?; ls /sys/fs/bpf; (exit $s)")
        .step("no policy", "tollgate enforce /nothing")
        .step("no type", "tollgate enforce /policy --unconfined somebody_t; s=$?; ls /sys/fs/bpf; (exit $s)")
        .step(
            "foreign",
            &format!("mkdir -p {pins}/mine; tollgate enforce /policy; s=$?; rmdir {pins}/mine {pins}; (exit $s)"),
        )
        .step("enforce", "tollgate enforce /policy")
        .step("second", "tollgate enforce /policy")
        .step("nobody's mode", "su nobody -c 'tollgate mode permissive'")
        .step("nobody's status", "su nobody -c 'tollgate status'")
        .step("half", &format!("kill -9 $(daemon); sleep 1; rm {pins}/maps/labels; tollgate enforce /policy"))
        .step("repaired", "tollgate stop --force && tollgate enforce /policy && tollgate mode")
        .run();
    steps["not root"].is(2, &["only root", "sudo"]);
    steps["no types"].is(2, &["CONFIG_DEBUG_INFO_BTF"]);
    assert!(!steps["refused"].is(2, &["handleunknown reject"]).text.contains("tollgate\n"), "pins are left");
    steps["no policy"].is(2, &["/nothing"]);
    assert!(!steps["no type"].is(2, &["somebody_t"]).text.contains("tollgate\n"), "pins are left");
    steps["foreign"].is(2, &["mine is none of Tollgate's pins"]);
    steps["enforce"].is(0, &[]);
    steps["second"].is(2, &["a daemon runs already (process "]);
    steps["nobody's mode"].is(2, &["only root"]);
    steps["nobody's status"].is(0, &["mode         enforcing"]);
    steps["half"].is(2, &["maps/labels is missing", "tollgate stop --force"]);
    steps["repaired"].is(0, &["enforcing"]);
}

#[test]
#[cfg(feature = "long")]
fn begins_anew_after_a_start_that_was_killed_and_after_another_version() {
    let scratch = Scratch::new();
    let pins = "/sys/fs/bpf/tollgate";
    // A start that is killed once its maps exist; if the kill came too late, its programs are detached.
    let begun = format!(
        "tollgate enforce --foreground /policy & until [ -e {pins}/inquiries/check ]; do :; done; kill -9 $!; wait $!; \
         rm -f {pins}/links/*; ls {pins}/maps | grep tasks"
    );
    let steps = Guest::new(&scratch, "6.1")
        .step("enforce", "tollgate enforce /policy")
        .step(
            "another version",
            &format!("kill -9 $(daemon); {GONE}; mv {pins}/build/* {pins}/build/then; tollgate enforce /policy; s=$?; tollgate enforce --once /policy; (exit $s)"),
        )
        .step("ended", &format!("tollgate stop --force; ls -d {pins}; tollgate status"))
        .step("killed start", &format!("{begun}; ls {pins}/links; tollgate status"))
        .step("started again", "tollgate enforce /policy && tollgate mode")
        .step(
            "killed again",
            &format!(
                "tollgate stop; {begun}; mv {pins}/build/* {pins}/build/then; mkdir {pins}/maps/then
                tollgate enforce --once /policy && ls {pins}/build {pins}/maps"
            ),
        )
        .run();
    steps["enforce"].is(0, &[]);
    steps["another version"].is(2, &["started by another version of this program", "tollgate stop --force"]);
    steps["ended"].is(1, &["tollgate: No such file", "nothing is enforced"]);
    steps["killed start"].is(1, &["tasks\n", "nothing is enforced"]);
    steps["started again"].is(0, &["enforcing"]);
    let again = &steps["killed again"].is(0, &["tasks\n", "enforcing, generation 1, "]).text;
    assert!(!again.lines().any(|name| name == "then"), "another version's are left: {again}");
}

/// A record as journald gets it: lines NAME=VALUE, and names each with the length of its value, which may have lines.
fn record(mut bytes: &[u8]) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(&bytes[..end]);
        bytes = &bytes[end + 1..];
        if let Some((name, value)) = line.split_once('=') {
            fields.insert(name.into(), value.into());
            continue;
        }
        let (length, rest) = bytes.split_first_chunk().unwrap();
        let (value, rest) = rest.split_at(u64::from_le_bytes(*length).try_into().unwrap());
        fields.insert(line.into(), String::from_utf8_lossy(value).into());
        bytes = &rest[1..];
    }
    fields
}

/// A daemon's life from its start until it is terminated: the records that the journal got, and what standard error did.
fn life(journal: &UnixDatagram, level: &str, stream: &str) -> (Vec<BTreeMap<String, String>>, String) {
    let (mut records, mut buffer) = (Vec::new(), [0; 1 << 16]);
    let of = fs::metadata("/run/stream").unwrap();
    let mut daemon = Command::new("/bin/tollgate")
        .args(["enforce", "--foreground", "/policy"])
        .env("JOURNAL_STREAM", format!("{}:{}", of.dev(), of.ino()))
        .env("NOTIFY_SOCKET", "/nowhere")
        .env("TOLLGATE_LOG", level)
        .stderr(File::create(stream).unwrap())
        .spawn()
        .unwrap();
    let mut asked = false;
    while daemon.try_wait().unwrap().is_none() {
        if !asked && Client::connect().and_then(|mut client| client.status()).is_ok() {
            asked = true;
            sh(&format!("kill -TERM {}", daemon.id()));
        }
        records.extend(journal.recv(&mut buffer).ok().map(|length| record(&buffer[..length])));
    }
    while let Ok(length) = journal.recv(&mut buffer) {
        records.push(record(&buffer[..length]));
    }
    // The journal is tried by a record of nothing.
    records.retain(|record| !record.is_empty());
    (records, fs::read_to_string(stream).unwrap())
}

#[test]
fn sends_the_journal_records_with_fields_and_prints_lines_elsewhere() {
    let this = name(sends_the_journal_records_with_fields_and_prints_lines_elsewhere);
    if !is_guest() {
        let scratch = Scratch::new();
        let guests = Guests {
            kernels: &["6.1"],
            policies: &[(&[own_parts(), vec![source("tests/enforcer/policy.cil")]].concat(), "/policy")],
            files: &[(&scratch.program(), "/bin/tollgate")],
            processors: 1,
            timeout: 900,
            share_srv: false,
            tests: &[this],
        };
        return guests.play(&scratch).assert_passed(sends_the_journal_records_with_fields_and_prints_lines_elsewhere);
    }
    fs::create_dir_all("/run/systemd/journal").unwrap();
    let journal = UnixDatagram::bind("/run/systemd/journal/socket").unwrap();
    journal.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    File::create("/run/stream").unwrap();
    let (in_force, ends) = ("/policy, generation 1: enforcing", "the daemon ends");
    let find = |records: &[BTreeMap<String, String>], text: &str| {
        records.iter().find(|record| record["MESSAGE"].contains(text)).cloned()
    };

    let (records, printed) = life(&journal, "info", "/run/stream");
    let told = find(&records, in_force).unwrap_or_else(|| panic!("{records:?}"));
    assert_eq!((told["PRIORITY"].as_str(), told["SYSLOG_IDENTIFIER"].as_str()), ("6", "tollgate"), "{told:?}");
    let warning = find(&records, "ready").unwrap_or_else(|| panic!("{records:?}"));
    assert!(warning["PRIORITY"] == "4" && warning["TOLLGATE_CAUSE"].contains("No such file"), "{warning:?}");
    assert!(find(&records, ends).is_some() && printed.is_empty(), "{records:?}\n{printed}");

    let (records, _) = life(&journal, "warn", "/run/stream");
    assert!(find(&records, "ready").is_some() && find(&records, in_force).is_none(), "{records:?}");

    let (records, printed) = life(&journal, "info", "/run/elsewhere");
    let lines = [in_force, ends].map(|text| printed.contains(&format!("tollgate: {text}")));
    assert!(lines == [true; 2] && records.is_empty() && !printed.contains("libbpf"), "{records:?}\n{printed}");

    let (_, printed) = life(&journal, "debug", "/run/elsewhere");
    assert!(printed.contains("tollgate: libbpf: "), "{printed}");
}

#[test]
#[cfg(feature = "long")]
fn starts_with_debians_policy_and_reports_how_long_that_takes() {
    let scratch = Scratch::new();
    let debian = scratch.path("debian");
    scratch.run(&["policy", "debian", "default", "-o", word(&debian)]).with(0);
    let timed = "read before _ </proc/uptime; tollgate enforce /debian; s=$?; read after _ </proc/uptime; echo $before $after; (exit $s)";
    let steps = Guest::new(&scratch, "6.1")
        .with(&debian, "/debian")
        .step("enforce", timed)
        .step("status", "tollgate status --json")
        .run();
    let text = &steps["enforce"].is(0, &[]).text;
    let times = text.lines().next_back().unwrap().split(' ').map(|time| time.parse::<f64>().unwrap());
    let [before, after] = times.collect::<Vec<_>>().try_into().unwrap();
    let status = steps["status"].is(0, &[]).json();
    assert_eq!((&status["mode"], &status["policy"]), (&"enforcing".into(), &"/debian".into()), "{status}");
    let took = after - before;
    report_time("start with Debian's policy, 6.1, emulated", &format!("{took:.1} s"), "90 s");
}

#[test]
fn installs_a_unit_whose_commands_work_and_takes_all_away_again() {
    let scratch = Scratch::new();
    let (root, build, repository) = (scratch.path("root"), scratch.path("lib"), source("."));
    let make = |target: &str| {
        let mut command = scratch.command("make", &["-s", "-C", word(&repository), target, "PREFIX=/usr"]);
        command.arg(format!("TOLLGATE={}", word(&scratch.program())));
        command.args([format!("LIBRARY={}", word(&build)), format!("DESTDIR={}", word(&root))]);
        scratch.finish(command).with(0);
    };
    make("install");
    // As systemd does, which has no options for it here.
    let line = |name: &str| format!("$(sed -n 's/ \\$TOLLGATE_OPTIONS//; s/^{name}=//p' /unit)");
    let steps = Guest::new(&scratch, "6.1")
        .with(&root.join("usr/bin/tollgate"), "/usr/bin/tollgate")
        .with(&root.join("usr/lib/systemd/system/tollgate.service"), "/unit")
        .step("start", &format!("mkdir /etc/tollgate; cp /policy /etc/tollgate/policy; rm /bin/tollgate\n{} & while ! tollgate mode; do sleep 0.2; done 2>/dev/null", line("ExecStart")))
        .step("reload", &line("ExecReload"))
        .step("stop", &format!("kill -TERM $(daemon); {GONE}; tollgate status"))
        .run();
    steps["start"].is(0, &["enforcing\n"]);
    steps["reload"].is(0, &["generation 2 is in force: "]);
    steps["stop"].is(0, &["enforcement goes on"]);
    make("uninstall");
    let left = Command::new("find").args([&root]).args(["!", "-type", "d"]).output().expect("run find");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}
