//! The audit log, as `tollgate audit` and the usual programs read it.
//!
//! Debian's packages of these programs are needed, from the cache or a network: without them these tests fail, and say so.

use std::{
    ffi::c_char,
    fs,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tollgate_abi::{
    CLASSES,
    enforcer::{TG_OBJECT_CAPABILITY, TG_OBJECT_PATH, tg_event},
};
use tollgate_audit::{Dispatcher, Reason, sink};

use crate::program::{
    Scratch,
    auditors::{audit2allow, ausearch, tool},
    word,
};

/// A policy with the types of the log and no rules.
const POLICY: &str = r"
(policycap open_perms) (mls true) (handleunknown deny)
(class file (read open)) (class capability (net_admin)) (classorder (file capability))
(sid kernel) (sidorder (kernel))
(sensitivity s0) (sensitivityorder (s0)) (level low (s0)) (levelrange all (low low))
(user user_u) (role object_r) (role user_r) (type user_t) (type shadow_t)
(userrole user_u user_r) (userrole user_u object_r) (userlevel user_u low) (userrange user_u all)
(roletype user_r user_t) (roletype object_r shadow_t) (roletype user_r shadow_t)
(typeattribute nobody) (typeattributeset nobody (user_t)) (allow nobody self (file (read)))
(context kernel_context (user_u user_r user_t all)) (sidcontext kernel kernel_context)
";

fn fill(to: &mut [c_char], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = from.cast_signed());
}

/// An event of user_t: these permissions of a class were denied.
fn event(class: &str, permissions: &[&str]) -> tg_event {
    let index = CLASSES.iter().position(|known| known.name == class).unwrap();
    let bit = |permission: &&str| CLASSES[index].permissions.iter().position(|known| known == permission).unwrap();
    let denied = permissions.iter().fold(0, |sum, permission| sum | 1 << bit(permission));
    let up = fs::read_to_string("/proc/uptime").unwrap();
    let seconds: f64 = up.split(' ').next().unwrap().parse().unwrap();
    let time = Duration::from_secs_f64(seconds).as_nanos() as u64;
    tg_event { time, class: index as u32 + 1, requested: denied, denied, source: 40, target: 40, ..tg_event::default() }
}

/// `cat` may not read /etc/shadow.
fn file() -> tg_event {
    let mut event = event("file", &["read", "open"]);
    (event.target, event.tgid, event.inode, event.object, event.result) = (41, 12, 13, TG_OBJECT_PATH, 13);
    fill(&mut event.command, b"cat");
    fill(&mut event.name, b"shadow\0etc\0");
    fill(&mut event.filesystem, b"sda1");
    event
}

/// A process whose name imitates two fields lacks CAP_NET_ADMIN.
fn capability() -> tg_event {
    let mut event = event("capability", &["net_admin"]);
    (event.tgid, event.object, event.number, event.result) = (14, TG_OBJECT_CAPABILITY, 12, 1);
    fill(&mut event.command, b"x tclass=file");
    event
}

fn context(sid: u32) -> Option<String> {
    Some(if sid == 40 { "user_u:user_r:user_t:s0" } else { "user_u:object_r:shadow_t:s0" }.into())
}

/// The log that the daemon would write for these events.
fn log(folder: &Path, events: &[tg_event]) {
    let mut dispatcher = Dispatcher::files(folder).unwrap();
    events.iter().for_each(|event| dispatcher.event(event, context));
}

const RULES: [&str; 2] = ["allow user_t self:capability net_admin;", "allow user_t shadow_t:file { open read };"];

#[test]
fn auditds_programs_find_the_fields_of_a_denial() {
    let scratch = Scratch::new();
    log(&scratch.path("log"), &[file(), capability()]);
    let log = scratch.path("log").join(sink::TEXT);
    let found = ausearch(&scratch, &log, &["-m", "USER_AVC", "-i"]).with(0).stdout;
    assert_eq!(found.matches("type=USER_AVC").count(), 2, "{found}");
    let denied = "avc:  denied  { read open } for  pid=12 comm=cat path=/etc/shadow dev=\"sda1\" ino=13 \
                  scontext=user_u:user_r:user_t:s0 tcontext=user_u:object_r:shadow_t:s0 tclass=file permissive=0";
    assert!(found.contains(denied), "{found}");
    for (option, value, matches) in
        [("-o", "shadow_t", 1), ("-o", "nobody_t", 0), ("-c", "cat", 1), ("-c", "x tclass=file", 1)]
    {
        let found = ausearch(&scratch, &log, &[option, value, "--raw"]).stdout;
        assert_eq!(found.lines().count(), matches, "{option} {value}: {found}");
    }
    let report = tool(&scratch, Path::new("sbin/aureport"), &["-if", word(&log), "--avc"]);
    let report = scratch.finish(report).with(0).stdout;
    assert!(report.contains(" file read open user_u:object_r:shadow_t:s0 denied "), "{report}");
    assert!(report.contains(" capability net_admin user_u:user_r:user_t:s0 denied "), "{report}");
}

#[test]
fn audit2allow_gives_the_missing_rules_from_either_form() {
    let scratch = Scratch::new();
    log(&scratch.path("log"), &[file(), capability(), file(), capability()]);
    let text = fs::read_to_string(scratch.path("log").join(sink::TEXT)).unwrap();
    // Without auditd, the kernel's audit writes to the kernel's log: the same record behind another head.
    let kernel = text.replace("type=USER_AVC msg=", "[   12.345678] audit: type=1107 ");
    let (policy, built) = (scratch.file("p.cil", POLICY), scratch.path("built"));
    scratch.run(&["policy", "build", word(&policy), "-o", word(&built)]).with(0);
    for (name, text) in [("auditd", &text), ("kernel", &kernel)] {
        assert_eq!(audit2allow(&scratch, &built, &scratch.file(name, text)), RULES, "{name}\n{text}");
    }
}

#[test]
fn shows_the_log_to_people_and_as_json() {
    let scratch = Scratch::new();
    let folder = scratch.path("log");
    log(&folder, &[file(), capability(), file(), file()]);
    let folder = word(&folder);
    let text = scratch.run(&["audit", "--log", folder]).with(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].ends_with("Z denied user_t shadow_t:file { read open } /etc/shadow, by cat[12]"), "{text}");
    assert!(lines[1].ends_with("Z denied user_t user_t:capability { net_admin }, by x tclass=file[14]"), "{text}");
    assert!(lines[2].ends_with(", by cat[12], 2 more like this within a second"), "{text}");
    let json = scratch.run(&["audit", "--log", folder, "--json"]).with(0).stdout;
    let json: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((json.len(), &json[0]["path"], &json[2]["repeated"]), (3, &"/etc/shadow".into(), &2.into()));
    let count = |more: &[&str]| {
        let ended = scratch.run(&[&["audit", "--log", folder], more].concat()).with(0);
        ended.stdout.lines().count()
    };
    assert_eq!(count(&["--domain", "user_t"]), 3);
    assert_eq!(count(&["--domain", "other_t"]), 0);
    assert_eq!(count(&["--since", "1h"]), 3);
    assert_eq!(count(&["--since", "2100-01-01T00:00:00Z"]), 0);
}

#[test]
fn follows_the_log_over_a_restart_of_the_daemon() {
    let scratch = Scratch::new();
    let folder = scratch.path("log");
    log(&folder, &[file()]);
    let mut dispatcher = Dispatcher::files(&folder).unwrap();
    let mut follower = scratch.start(scratch.tollgate(&["audit", "--follow", "--log", word(&folder)]));
    // It has begun when it prints something: earlier entries are not shown.
    let mut lost = 0;
    follower.wait_until("an entry that came after its start", |running| {
        lost += 1;
        dispatcher.lost(Reason::RingBuffer, lost);
        !running.stdout().is_empty()
    });
    drop(dispatcher);
    log(&folder, &[capability()]);
    follower.wait_until("the entry of the second daemon", |running| running.stdout().contains("net_admin"));
    assert!(!follower.stdout().contains("/etc/shadow"), "{}", follower.stdout());
    follower.interrupt();
    let ended = follower.finish().with(0);
    assert!(ended.stdout.contains(&format!("lost {lost} events: the ring buffer was full")), "{}", ended.stdout);
}

#[test]
fn says_what_is_wrong_with_the_log_and_with_a_time() {
    let scratch = Scratch::new();
    scratch.run(&["audit", "--log", "nowhere"]).refused(&["nowhere", "tollgate enforce"]);
    scratch.run(&["audit", "--since", "yesterday"]).refused(&["yesterday", "2026-11-21T08:00:00Z"]);
    let file = scratch.path("log");
    fs::create_dir(&file).unwrap();
    fs::write(file.join(sink::JSON), "garbage\n").unwrap();
    scratch.run(&["audit", "--log", word(&file)]).with(0).says(&["1 lines"]);
}

#[test]
fn keeps_the_time_of_the_event() {
    let scratch = Scratch::new();
    log(&scratch.path("log"), &[file()]);
    let text = fs::read_to_string(scratch.path("log").join(sink::TEXT)).unwrap();
    let seconds: u64 = text.split("audit(").nth(1).unwrap().split('.').next().unwrap().parse().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(seconds) < 60, "{text}");
}
