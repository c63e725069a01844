use std::ffi::c_char;

use tollgate_abi::{CLASSES, enforcer::TG_OBJECT_NONE};

use super::*;
use crate::{Entry, text};

const BOOTED: u64 = 1_700_000_000_000_000_000;

/// The number of a class, and the vector of these permissions of it.
fn vector(name: &str, permissions: &[&str]) -> (u32, u32) {
    let index = CLASSES.iter().position(|class| class.name == name).unwrap();
    let bit = |permission: &&str| CLASSES[index].permissions.iter().position(|known| known == permission).unwrap();
    (index as u32 + 1, permissions.iter().fold(0, |sum, permission| sum | 1 << bit(permission)))
}

fn fill(array: &mut [c_char], bytes: &[u8]) {
    for (to, from) in array.iter_mut().zip(bytes) {
        *to = from.cast_signed();
    }
}

fn event(class: &str, permissions: &[&str]) -> tg_event {
    let (class, denied) = vector(class, permissions);
    let mut event = tg_event {
        time: 1_234_567_890,
        source: 40,
        target: 41,
        class,
        requested: denied,
        denied,
        pid: 13,
        tgid: 12,
        result: 13,
        generation: 3,
        object: TG_OBJECT_NONE,
        ..tg_event::default()
    };
    fill(&mut event.command, b"cat");
    event
}

fn denial(event: &tg_event) -> Denial {
    Denial::new(event, BOOTED, |sid| match sid {
        40 => Some("user_u:user_r:user_t:s0".into()),
        41 => Some("system_u:object_r:shadow_t:s0".into()),
        _ => None,
    })
}

fn at(event: &mut tg_event, object: u32, name: &[u8], filesystem: &[u8], inode: u64) {
    event.object = object;
    event.inode = inode;
    fill(&mut event.name, name);
    fill(&mut event.filesystem, filesystem);
}

const CONTEXTS: &str = "scontext=user_u:user_r:user_t:s0 tcontext=system_u:object_r:shadow_t:s0";

#[test]
fn writes_a_denied_open_as_the_kernel_does() {
    let mut event = event("file", &["read", "open"]);
    at(&mut event, TG_OBJECT_PATH, b"shadow\0etc\0", b"sda1", 13);
    let expected = format!(
        "avc:  denied  {{ read open }} for  pid=12 comm=\"cat\" path=\"/etc/shadow\" dev=\"sda1\" ino=13 {CONTEXTS} \
         tclass=file permissive=0"
    );
    assert_eq!(denial(&event).to_string(), expected);
    assert_eq!(denial(&event).time, 1_700_000_001_234);
}

#[test]
fn names_setenforce_where_enforcement_lives_by_the_object() {
    let mut event = event("file", &["write", "open"]);
    at(&mut event, TG_OBJECT_PATH, b"ftrace_enabled\0kernel\0", b"proc", 13);
    event.withheld = 1;
    let denial = denial(&event);
    assert_eq!(
        (denial.tclass.as_str(), denial.tsid, &denial.permissions[..]),
        ("security", 2, &["setenforce".into()][..])
    );
    let text = denial.to_string();
    assert!(text.contains("{ setenforce }") && text.contains("/kernel/ftrace_enabled"), "{text}");
    assert!(text.ends_with(" tclass=security permissive=0 withheld=file:write,open"), "{text}");
    let Some(Entry::Avc(read)) = text::parse(&text) else { panic!("{text}") };
    assert_eq!(read.withheld.as_deref(), Some("file:write,open"));
}

#[test]
fn writes_what_each_kind_of_object_has() {
    let shows = |event: &tg_event, expected: &str| {
        let text = denial(event).to_string();
        assert!(text.contains(&format!("comm=\"cat\"{expected}scontext=")), "{text} has no {expected}");
    };
    let mut inode = event("dir", &["search"]);
    at(&mut inode, TG_OBJECT_INODE, b"etc", b"tmpfs", 7);
    shows(&inode, " name=\"etc\" dev=\"tmpfs\" ino=7 ");
    let mut nameless = event("dir", &["search"]);
    at(&mut nameless, TG_OBJECT_INODE, b"", b"tmpfs", 7);
    shows(&nameless, " dev=\"tmpfs\" ino=7 ");
    let mut root = event("dir", &["search"]);
    at(&mut root, TG_OBJECT_PATH, b"", b"sda1", 2);
    shows(&root, " path=\"/\" dev=\"sda1\" ino=2 ");
    let mut cut = event("file", &["read"]);
    at(&mut cut, TG_OBJECT_PATH, b"file\0deep\0.\0", b"sda1", 2);
    shows(&cut, " path=\"deep/file\" dev=\"sda1\" ino=2 ");
    for (filesystem, name, path) in [
        (&b"pipefs"[..], &b""[..], "pipe:[8]"),
        (b"sockfs", b"TCP", "socket:[8]"),
        (b"anon_inodefs", b"[eventpoll]", "anon_inode:[eventpoll]"),
    ] {
        let mut pathless = event("fifo_file", &["read"]);
        at(&mut pathless, TG_OBJECT_PATH, name, filesystem, 8);
        shows(&pathless, &format!(" path=\"{path}\" dev=\"{}\" ino=8 ", String::from_utf8_lossy(filesystem)));
    }
    let mut ioctl = event("chr_file", &["ioctl"]);
    at(&mut ioctl, TG_OBJECT_IOCTL, b"tty\0dev\0", b"devtmpfs", 9);
    ioctl.number = 0xffff_5413;
    shows(&ioctl, " path=\"/dev/tty\" dev=\"devtmpfs\" ino=9 ioctlcmd=0x5413 ");
    let mut capability = event("capability", &["net_admin"]);
    capability.object = TG_OBJECT_CAPABILITY;
    capability.number = 12;
    shows(&capability, " capability=12  ");
    let mut queue = event("msgq", &["associate"]);
    queue.object = TG_OBJECT_IPC;
    queue.number = u32::MAX;
    shows(&queue, " ipc_key=-1  ");
    let mut task = event("process", &["sigkill"]);
    at(&mut task, TG_OBJECT_TASK, b"two words", b"", 0);
    task.number = 99;
    shows(&task, " opid=99 ocomm=74776F20776F726473 ");
    task.name = [0; 512];
    shows(&task, " opid=99 ");
    for (class, key) in [("system", "kmod"), ("anon_inode", "anonclass"), ("filesystem", "name")] {
        let mut named = event(class, &[]);
        named.denied = 1;
        at(&mut named, TG_OBJECT_NAME, b"it", b"", 0);
        shows(&named, &format!(" {key}=\"it\" "));
    }
}

#[test]
fn lets_no_name_look_like_a_field() {
    let mut event = event("file", &["read"]);
    at(&mut event, TG_OBJECT_INODE, b"x\" tclass=process '", b"sd\"a", 1);
    fill(&mut event.command, b"sh\nscontext=x:y:z");
    let text = denial(&event).to_string();
    assert_eq!(text.matches("tclass=").count(), 1, "{text}");
    assert_eq!(text.matches("scontext=").count(), 1, "{text}");
    assert!(!text.contains('\n'), "{text}");
}

#[test]
fn tells_what_auditallow_granted_without_permissive() {
    let mut event = event("file", &["write"]);
    event.denied = 0;
    event.permissive = 1;
    let denial = denial(&event);
    assert!(denial.to_string().starts_with("avc:  granted  { write } for  pid=12"), "{denial}");
    assert!(denial.to_string().ends_with(" tclass=file"), "{denial}");
    let json = serde_json::to_value(&denial).unwrap();
    assert_eq!((&json["verdict"], &json["permissive"]), (&"granted".into(), &false.into()));
}

#[test]
fn names_sids_without_context_and_permissions_without_name_by_number() {
    let mut event = event("fd", &["use"]);
    event.denied |= 1 << 31 | 1 << 5;
    event.source = 500;
    let text = denial(&event).to_string();
    assert!(text.contains("{ use 0x80000020 }"), "{text}");
    assert!(text.contains(" ssid=500 tcontext="), "{text}");
    assert!(Denial::new(&event, BOOTED, |_| Some(String::new())).to_string().contains(" ssid=500 tsid=41 "));
    event.class = 4000;
    assert!(denial(&event).to_string().contains(" tclass=4000 "), "{}", denial(&event));
}

#[test]
fn tells_a_permissive_denial_and_repetitions() {
    let mut event = event("file", &["write"]);
    event.permissive = 1;
    let mut denial = denial(&event);
    denial.repeated = 41;
    assert!(denial.to_string().ends_with("tclass=file permissive=1 repeated=41"), "{denial}");
    assert_eq!(denial.domain(), Some("user_t"));
}

#[test]
fn survives_json_whatever_the_object_is() {
    for object in 0..=8 {
        for filesystem in [&b"sda1"[..], b""] {
            let mut event = event("file", &["read"]);
            at(&mut event, object, b"\xffname\0etc\0", filesystem, u64::MAX);
            event.number = u32::MAX;
            let denial = denial(&event);
            let text = serde_json::to_string(&denial).unwrap();
            assert_eq!(serde_json::from_str::<Denial>(&text).unwrap(), denial, "{text}");
        }
    }
}

/// docs/audit.md promises these names.
#[test]
fn keeps_the_names_of_json() {
    let mut event = event("file", &["read"]);
    at(&mut event, TG_OBJECT_PATH, b"shadow\0etc\0", b"sda1", 13);
    let json = serde_json::to_value(denial(&event)).unwrap();
    let expected = serde_json::json!({
        "time": "2023-11-14T22:13:21.234Z", "verdict": "denied", "permissions": ["read"], "pid": 12, "comm": "cat",
        "object": "path", "path": "/etc/shadow", "dev": "sda1", "ino": 13, "scontext": "user_u:user_r:user_t:s0",
        "ssid": 40, "tcontext": "system_u:object_r:shadow_t:s0", "tsid": 41, "tclass": "file", "permissive": false,
        "errno": 13, "generation": 3,
    });
    assert_eq!(json, expected);
}

#[test]
fn takes_any_event_without_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..3000 {
        let mut bytes = [0u8; size_of::<tg_event>()];
        random.fill(&mut bytes);
        // SAFETY: every bit pattern is a tg_event: it has integers only.
        let mut event: tg_event = unsafe { std::mem::transmute(bytes) };
        event.object %= 9;
        event.class %= 150;
        let denial = denial(&event);
        assert!(denial.to_string().bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{denial}");
        serde_json::from_str::<Denial>(&serde_json::to_string(&denial).unwrap()).unwrap();
    }
}
