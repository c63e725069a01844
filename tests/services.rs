//! Services: contexts by unit, and the report when one is no longer confined.
//!
//! QEMU, kernels and a C compiler are needed: without them these tests fail, and say so.

use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    machine::{build, own_parts, source},
    steps::Guest,
    word,
};

/// Waits until the daemon is gone: its process stays as a zombie, because nothing reaps it in a guest.
const GONE: &str = "while tollgate mode; do sleep 0.2; done >/dev/null 2>&1";

/// Runs a command in a cgroup, which is created: `inside CGROUP COMMAND...`.
const INSIDE: &str = "\
inside() {
    mkdir -p /sys/fs/cgroup/$1 && group=$1 && shift
    sh -c 'echo $$ >/sys/fs/cgroup/'$group'/cgroup.procs; \"$@\"' sh \"$@\"
}
unit() { mkdir -p /etc/systemd/system && printf '[Service]\\nSELinuxContext=%s\\n' \"$2\" >/etc/systemd/system/$1; }
";

/// The expected domain of a process after each step.
const DOMAINS: [(&str, &str); 15] = [
    ("unit", "visitor"),
    ("below", "visitor"),
    ("another", "unconfined_t"),
    ("slice", "unconfined_t"),
    ("instance", "keeper"),
    ("its socket", "unconfined_t"),
    ("user's", "unconfined_t"),
    ("set", "changer"),
    ("drop-in", "keeper"),
    ("gone", "visitor"),
    ("ignored", "unconfined_t"),
    ("unset", "unconfined_t"),
    ("again", "visitor"),
    ("later", "visitor"),
    ("still", "visitor"),
];

#[test]
fn confines_what_starts_in_the_cgroup_of_a_unit() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        // Reads a file that only the machine may read, and continues as systemd-executor does.
        let executor = scratch.file("executor", "#!/bin/sh\nread -r line </secret && echo $line\nexec calls getcon\n");
        let slice = "system.slice/system-web.slice";
        let steps = Guest::new(&scratch, kernel)
            .names(INSIDE)
            .with_library()
            .with(&executor, "/executor")
            .with(&source("tests/enforcer/policy.cil"), "/etc/tollgate/nothing")
            .step("enforce", "unit web.service $(at visitor); unit web@.service $(at keeper); tollgate enforce /policy")
            .step("listed", "tollgate unit list")
            .step("unit", "inside system.slice/web.service calls getcon")
            .step("below", "inside system.slice/web.service/x.slice/other.service calls getcon")
            .step("another", "inside system.slice/other.service calls getcon")
            .step("slice", "inside system.slice calls getcon")
            .step("instance", &format!("inside {slice}/web@1.service calls getcon"))
            .step("its socket", &format!("inside {slice}/web@1.socket calls getcon"))
            .step("user's", "inside user.slice/user-1.slice/user@1.service/app.slice/web.service calls getcon")
            .step("deep", &format!("inside {}web.service calls getcon", "a.slice/".repeat(20)))
            .step("set", "tollgate unit set other $(at changer) && inside system.slice/other.service calls getcon")
            .step("unknown", "tollgate unit set other $(at nobody); cat /etc/tollgate/units")
            .step("no unit", "tollgate unit set web.timer $(at changer)")
            .step(
                "drop-in",
                "mkdir /etc/systemd/system/web.service.d
                 printf '[Service]\\nSELinuxContext=%s\\n' $(at keeper) >/etc/systemd/system/web.service.d/x.conf
                 sleep 2; inside system.slice/web.service calls getcon",
            )
            .step(
                "gone",
                "rm -r /etc/systemd/system/web.service.d; sleep 2; inside system.slice/web.service calls getcon",
            )
            .step("none", "unit bad.service a_u:a_r:a_t:s0; sleep 2; inside system.slice/bad.service calls getcon")
            .step("told", "tollgate unit list")
            .step("counted", "tollgate status; grep bad.service /var/log/tollgate/daemon.log")
            .step("ignored", "unit bad.service -a_u:a_r:a_t:s0; sleep 2; inside system.slice/bad.service calls getcon")
            .step("fine", "tollgate unit list")
            .step(
                "executor",
                "chmod 755 /executor; echo secret >/secret; tollgate label set $(of three) /secret
                 tollgate label set $(of executor) /executor; inside system.slice/web.service /executor",
            )
            .step("no executor", "tollgate label set $(of one) /executor; inside system.slice/web.service /executor")
            .step("unset", "tollgate unit unset other && inside system.slice/other.service calls getcon")
            .step("not set", "tollgate unit unset other")
            .step("killed", &format!("kill -9 $(daemon); {GONE}; tollgate unit list"))
            .step("without", "inside system.slice/web.service cat /secret")
            .step("without, new", &format!("inside {slice}/web@2.service cat /secret"))
            .step("while off", "unit late.service $(at visitor); tollgate unit set later $(at visitor)")
            .step("again", "tollgate enforce /policy && inside system.slice/late.service calls getcon")
            .step("later", "inside system.slice/later.service calls getcon")
            .step("still", "inside system.slice/web.service calls getcon")
            .step("stopped", "tollgate stop && inside system.slice/web.service cat /secret")
            .run();
        let domain = |name: &str| format!("getcon: system_u:system_r:{name}:s0-s15:c0.c1023\n");
        steps["enforce"].is(0, &[]);
        steps["listed"].is(0, &["web.service ", "web@.service ", "/etc/systemd/system/web.service\n"]);
        for (step, is) in DOMAINS {
            let is = domain(is);
            assert!(steps[step].is(0, &[]).text.ends_with(&is), "{kernel}, {step}: {:?}", steps[step]);
        }
        steps["deep"].is(126, &["Permission denied"]);
        assert!(!steps["unknown"].is(0, &["stays as it is", "nobody", "other.service "]).text.contains("nobody:s0\n"));
        steps["no unit"].is(2, &["not a unit with processes of its own"]);
        steps["none"].is(126, &["Permission denied"]);
        steps["told"].is(1, &["bad.service ", "cannot start: "]);
        steps["counted"].is(0, &["a unit's context that is none", "bad.service cannot start"]);
        steps["fine"].is(0, &["runs without it"]);
        steps["executor"].is(0, &["secret\n", &domain("visitor")]);
        steps["no executor"].is(0, &["/secret: Permission denied", &domain("visitor")]);
        steps["not set"].is(2, &["gives other.service no context"]);
        steps["killed"].is(0, &["no daemon runs", "web@.service "]);
        steps["without"].is(1, &["Permission denied"]);
        steps["without, new"].is(1, &["Permission denied"]);
        steps["while off"].is(0, &["no daemon runs"]);
        steps["stopped"].is(0, &["secret"]);
    }
}

/// The machine executes a program in /srv/app, which has a domain of its own.
const ENTERS: &str = "(typetransition unconfined_domain subject_exec process visitor)\n(allow visitor subject_exec (file (entrypoint)))\n\
    (allow subject three (dir (search getattr)))\n";
/// A directory in which no confined domain may create files.
const PLACES: &str = "/.* system_u:object_r:file_t:s0\n/srv/app -d system_u:object_r:three:s0\n/srv/app/server -- system_u:object_r:subject_exec:s0\n";
/// Runs it as a service, and ends it.
const SERVICE: &str = "\
label() { tollgate label get /srv/app/server; }
start() {
    mkdir -p /sys/fs/cgroup/system.slice/app.service
    sh -c 'echo $$ >/sys/fs/cgroup/system.slice/app.service/cgroup.procs; exec /srv/app/server' & sleep 1
}
end() { kill $(cat /sys/fs/cgroup/system.slice/app.service/cgroup.procs); sleep 0.5; }
";

#[test]
#[ignore = "takes long: make test-rest"]
fn tells_what_is_confined_no_more() {
    let scratch = Scratch::new();
    let places = scratch.file("places", PLACES);
    let build = |name: &str, rules: &str| {
        let files = vec![source("tests/enforcer/policy.cil"), scratch.file(&format!("{name}.cil"), rules)];
        build(&scratch, name, &[own_parts(), files].concat(), &["--file-contexts", word(&places)])
    };
    let (with, without) = (build("with", ENTERS), build("without", "(type more)\n"));
    let server = scratch.file("server", "#!/bin/sh\nsleep 100 &\nwait\n");
    let steps = Guest::under(&scratch, "6.1", &with)
        .names(INSIDE)
        .names(SERVICE)
        .with(&without, "/without")
        .with(&server, "/srv/app/server")
        .with(&server, "/other")
        .step("enforce", "chmod 755 /srv/app/server /other; tollgate enforce /policy && tollgate label restore -R /srv/app && label && tollgate status")
        .step("confined", "start; tollgate service list")
        .step("known", "sleep 1; cat /var/lib/tollgate/confined; end")
        .step("edited", "sed -i s/100/101/ /srv/app/server; sleep 1; label")
        .step("moved", "mv /other /srv/app/server; sleep 1; label; start; tollgate service list; end")
        .step(
            "refused",
            "tollgate label set $(of file_t) /srv/app; cp /srv/app/server /new; mv /new /srv/app/server; sleep 1; label
             tollgate label restore /srv/app; grep 'was replaced and is' /var/log/tollgate/daemon.log",
        )
        .step("unlabelled", "tollgate label set $(of one) /srv/app/server; sleep 1; label; start; sleep 0.5")
        // All processes are examined every half minute anyway; a guest on a busy machine is slow.
        .step("told", "for i in $(seq 10); do grep 'is not confined' /var/log/tollgate/daemon.log && break; sleep 0.5; done")
        .step("status", "tollgate status")
        .step("metrics", "tollgate status --metrics | grep not_confined")
        .step("listed", "tollgate service list")
        .step("restored", "end; tollgate label restore /srv/app/server; start; sleep 1; tollgate status")
        .step("forgotten", "end; tollgate reload /without; start; sleep 1; tollgate service list")
        .step("accepted", "tollgate service accept; tollgate service list && tollgate status")
        .step("again", "end; tollgate stop; tollgate enforce /policy && tollgate status")
        .step(
            "another boot",
            "tollgate stop; echo another >/boot_id; mount --bind /boot_id /proc/sys/kernel/random/boot_id
             tollgate enforce /without; tollgate status",
        )
        .step("meant", "tollgate service accept && tollgate status")
        .run();
    let labelled = "system_u:object_r:subject_exec:s0 /srv/app/server\n";
    steps["enforce"].is(0, &[labelled, "labels       complete\n", "failures     none\n"]);
    steps["confined"].is(0, &["app.service ", " confined ", " visitor "]);
    steps["known"].is(0, &["program app.service visitor /srv/app/server\n"]);
    steps["edited"].is(0, &[labelled]);
    steps["moved"].is(0, &[labelled, " confined ", " visitor "]);
    steps["refused"].is(0, &["system_u:object_r:file_t:s0 /srv/app/server", "confined domains may make files"]);
    steps["unlabelled"].is(0, &["system_u:object_r:one:s0 /srv/app/server"]);
    steps["told"].is(0, &["app.service is not confined", "tollgate label restore /srv/app/server"]);
    let status = steps["status"].is(1, &["app.service is not confined"]);
    assert!(!status.text.contains("failures     none"), "{}", status.text);
    steps["metrics"].is(0, &["tollgate_services_not_confined 1"]);
    steps["listed"].is(1, &["NOT CONFINED", "unconfined_t", "file_contexts say"]);
    steps["restored"].is(0, &["failures     none\n"]);
    steps["forgotten"].is(1, &["NOT CONFINED", "ran so before"]);
    steps["accepted"].is(0, &["failures     none\n"]);
    steps["again"].is(0, &["failures     none\n"]);
    steps["another boot"].is(1, &["not the one that was in force when the machine ran last"]);
    steps["meant"].is(0, &["failures     none\n"]);
}
