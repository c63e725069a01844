//! Debian's own programs over libselinux.so.1 of our own (lib/selinux), in a guest.

use std::path::{Path, PathBuf};

use tollgate_host::{Cache, Packages};

use crate::{
    program::{
        Scratch,
        machine::{build, own_parts, source},
        steps::Guest,
        word,
    },
    selinux_library::{asker, library},
};

/// What Debian's coreutils and selinux-utils have.
const COREUTILS: [&str; 5] = ["ls", "id", "runcon", "chcon", "stat"];
const UTILITIES: [&str; 4] = ["matchpathcon", "getsebool", "getenforce", "setenforce"];

/// `debian PROGRAM...` runs a program of Debian's over our library.
const DEBIAN: &str = "\
debian() { program=/debian/$1; shift; LD_LIBRARY_PATH=/opt/selinux $program \"$@\"; }
";
const MORE: &str = "(boolean web_mail true) (boolean web_home false)
    (booleanif web_mail (true (allow visitor three (lnk_file (read)))))
    (booleanif web_home (true (allow visitor three (lnk_file (write)))))
    (allow visitor security_t (file (getattr open read map)))
    (allow visitor security_t (dir (search)))";
const FILE_CONTEXTS: &str = "/.* system_u:object_r:file_t:s0\n/srv(/.*)? system_u:object_r:one:s0\n";

fn built(scratch: &Scratch, name: &str, more: &str) -> PathBuf {
    let more = scratch.file(&format!("{name}.cil"), more);
    let contexts = scratch.file("file_contexts", FILE_CONTEXTS);
    let files = [&own_parts()[..], &[source("tests/enforcer/policy.cil"), more]].concat();
    build(scratch, name, &files, &["--file-contexts", word(&contexts)])
}

fn utilities(scratch: &Scratch) -> PathBuf {
    let root = scratch.path("utilities");
    std::fs::create_dir_all(&root).unwrap();
    Packages::new(&Cache::of_user().unwrap()).unpack(&["selinux-utils/bookworm"], &root).unwrap();
    root.join("usr/sbin")
}

#[test]
fn runs_debians_programs_unmodified() {
    let scratch = Scratch::new();
    let policy = built(&scratch, "policy", MORE);
    let other = built(&scratch, "other", &format!("{MORE} (allow visitor three (file (read)))"));
    let utilities = utilities(&scratch);
    let mut guest = Guest::under(&scratch, "6.1", &policy)
        .with(&other, "/other")
        .with(&library(&scratch, Path::new("/run/tollgate")), "/opt/selinux/libselinux.so.1")
        .with(&asker(&scratch), "/debian/ask");
    for name in COREUTILS {
        guest = guest.with(&Path::new("/usr/bin").join(name), &format!("/debian/{name}"));
    }
    for name in UTILITIES {
        guest = guest.with(&utilities.join(name), &format!("/debian/{name}"));
    }
    let check = "echo \"has $(at visitor) $(of three) file read\" | debian ask";
    let steps = guest
        .names(DEBIAN)
        .step("before", "debian id -Z; debian getenforce; debian ls -Z /policy")
        .step("enforce", "tollgate enforce /policy >/dev/null; mkdir /srv; : >/srv/x; tollgate label restore -R /srv >/dev/null")
        .step("id", "debian id -Z")
        .step("runcon", "debian runcon $(at visitor) /bin/busybox env LD_LIBRARY_PATH=/opt/selinux /debian/id -Z")
        .step("ls", "debian ls -Z /srv")
        .step("chcon", "debian chcon $(of two) /srv/x && debian stat -c %C /srv/x && tollgate label get /srv/x")
        .step("chcon wrong", "debian chcon system_u:object_r:nothing:s0 /srv/x")
        .step("matchpathcon", "debian matchpathcon /srv/x /etc")
        .step("booleans", "debian getsebool -a")
        .step("modes", "debian getenforce; debian setenforce 0; debian getenforce; tollgate status | head -n 1; debian setenforce 1")
        .step("check", check)
        .step("reload", &format!("tollgate reload /other >/dev/null; {check}"))
        .step("permissive", &format!("tollgate reload /policy >/dev/null; tollgate mode --domain visitor permissive; {check}"))
        .step("without a daemon", &format!("kill -9 $(daemon); sleep 1; tollgate status; debian getenforce; debian matchpathcon /srv/y; {check}"))
        .step("stopped", "tollgate stop --force; debian getenforce; debian id -Z")
        .run();
    println!("{steps:#?}");
    steps["before"].is(0, &["only on an SELinux-enabled kernel", "Disabled", "? /policy"]);
    steps["id"].is(0, &["system_u:system_r:unconfined_t:s0-s15:c0.c1023"]);
    steps["runcon"].is(0, &["system_u:system_r:visitor:s0-s15:c0.c1023"]);
    steps["ls"].is(0, &["system_u:object_r:one:s0 x"]);
    steps["chcon"].is(0, &["system_u:object_r:two:s0\nsystem_u:object_r:two:s0"]);
    steps["chcon wrong"].is(1, &["Invalid argument"]);
    steps["matchpathcon"].is(0, &["/srv/x\tsystem_u:object_r:one:s0", "/etc\tsystem_u:object_r:file_t:s0"]);
    steps["booleans"].is(0, &["web_mail --> on\nweb_home --> off"]);
    steps["modes"].is(0, &["Enforcing\nPermissive\n"]);
    steps["check"].is(0, &["enabled 1 enforcing 1\n", "permissive=0\nerrno 13\n"]);
    steps["reload"].is(0, &["enabled 1 enforcing 1\n0"]);
    steps["permissive"].is(0, &["enabled 1 enforcing 1\n", "permissive=1\n0\n"]);
    steps["without a daemon"].is(0, &["Enforcing", "/srv/y\tsystem_u:object_r:one:s0", "permissive=1\n0\n"]);
    steps["stopped"].is(1, &["Disabled", "only on an SELinux-enabled kernel"]);
}

/// The bus is unconfined, and decides which clients may send it messages.
const BUS: &str = "(class dbus (acquire_svc send_msg)) (classorder (unordered dbus))
    (allow unconfined_t unconfined_t (dbus (all)))";
const CONFIGURATION: &str = "<busconfig><type>system</type><listen>unix:path=/run/bus</listen><auth>EXTERNAL</auth>
    <policy context=\"default\"><allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/>
    </policy></busconfig>";
const SEND: &str = "dbus-send --bus=unix:path=/run/bus --print-reply --dest=org.freedesktop.DBus / \
                    org.freedesktop.DBus.GetId 2>&1";

#[test]
fn lets_a_bus_decide_by_the_policy_in_force() {
    let scratch = Scratch::new();
    let allows = |domain: &str| format!("{BUS} (allow {domain} unconfined_t (dbus (send_msg)))");
    let policy = built(&scratch, "policy", &allows("keeper"));
    let other = built(&scratch, "other", &allows("visitor"));
    let send = |domain: &str| format!("as {domain} {SEND}");
    let steps = Guest::under(&scratch, "6.1", &policy)
        .with(&other, "/other")
        .with(&library(&scratch, Path::new("/run/tollgate")), "/opt/selinux/libselinux.so.1")
        .with(Path::new("/usr/bin/dbus-daemon"), "/debian/dbus-daemon")
        .with(Path::new("/usr/bin/dbus-send"), "/bin/dbus-send")
        .with(&scratch.file("bus.conf", CONFIGURATION), "/bus.conf")
        .names(DEBIAN)
        .step("enforce", "tollgate enforce /policy >/dev/null && mkdir -p /run && debian dbus-daemon --config-file=/bus.conf --fork --nopidfile")
        .step("allowed", &send("keeper"))
        .step("denied", &send("visitor"))
        .lines("tollgate reload /other >/dev/null\n")
        .step("denied now", &send("keeper"))
        .step("allowed now", &send("visitor"))
        .lines("tollgate mode permissive >/dev/null\n")
        .step("permissive", &send("keeper"))
        .run();
    println!("{steps:#?}");
    steps["enforce"].is(0, &[]);
    for step in ["allowed", "allowed now", "permissive"] {
        steps[step].is(0, &["string \""]);
    }
    for step in ["denied", "denied now"] {
        steps[step].is(1, &["An SELinux policy prevents this sender"]);
    }
}
