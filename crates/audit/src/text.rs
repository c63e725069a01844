//! Reads denials that others wrote: the kernel's records (security/selinux/avc.c) as auditd, ausearch or the kernel's
//! log have them, and our own. The text may come from anyone.

use super::{
    Denial, Entry, Load, Lost, Reason, Untrusted,
    avc::{self, Object, Place, Verdict},
    endpoints::Endpoints,
    untrusted::unhex,
};

/// Reads the entry in a line: JSON as this program logs it, or a record of the kernel's audit. `None`: the line is
/// about something else.
#[must_use]
pub fn parse(line: &str) -> Option<Entry> {
    let entry = read(line.trim())?;
    let plain = match &entry {
        Entry::Avc(denial) => is_plain(denial),
        Entry::Lost(_) => true,
        Entry::Load(Load { generation, mode, cause, .. }) => {
            ![cause, generation, mode].into_iter().flatten().any(|text| text.contains(char::is_control))
        }
    };
    plain.then_some(entry)
}

/// Whether what names classes, permissions and contexts can be one: a terminal obeys control characters.
fn is_plain(denial: &Denial) -> bool {
    let contexts = denial.scontext.iter().chain(&denial.tcontext);
    let mut names = contexts.chain(&denial.permissions).chain(&denial.withheld).chain([&denial.tclass]);
    names.all(|name| !name.contains(char::is_control))
}

fn read(line: &str) -> Option<Entry> {
    if line.starts_with('{') {
        return serde_json::from_str(line).ok();
    }
    let time = time(line);
    if let Some((_, text)) = line.split_once("avc:") {
        let text = text.trim_start();
        return match text.strip_prefix("lost ") {
            Some(lost) => own_loss(lost, time),
            None => denial(text, time).map(Entry::Avc),
        };
    }
    kernel_loss(line).map(|count| Entry::Lost(Lost { time, count, reason: Reason::KernelAudit }))
}

/// The time in `msg=audit(1700000001.234:17)`, in milliseconds since 1970; 0: there is none, it is not in this form, or it
/// is later than our own log can express.
fn time(line: &str) -> u64 {
    let stamp = || {
        let stamp = line.split_once("audit(")?.1.split_once(')')?.0.rsplit_once(':')?.0;
        let (seconds, milliseconds) = stamp.split_once('.')?;
        let (seconds, milliseconds): (u64, u64) = (seconds.parse().ok()?, milliseconds.parse().ok()?);
        let time = seconds.checked_mul(1000)?.checked_add(milliseconds.min(999))?;
        (time <= avc::time::LAST).then_some(time)
    };
    stamp().unwrap_or(0)
}

/// Reads `denied  { read open } for  pid=12 comm="cat" ... scontext=... tcontext=... tclass=file permissive=0`.
fn denial(text: &str, time: u64) -> Option<Denial> {
    let (verdict, rest) = text.split_once('{')?;
    let verdict = match verdict.trim() {
        "denied" => Verdict::Denied,
        "granted" => Verdict::Granted,
        _ => return None,
    };
    let (permissions, rest) = rest.split_once('}')?;
    let fields = Fields::of(rest);
    let permissions: Vec<String> = permissions.split_whitespace().map(str::to_owned).collect();
    let number = |key| fields.number(key).unwrap_or(0);
    let tclass = fields.plain("tclass")?.to_owned();
    Some(Denial {
        time,
        verdict,
        permissions,
        pid: u32::try_from(number("pid")).unwrap_or(0),
        comm: fields.name("comm"),
        object: fields.object(),
        scontext: fields.plain("scontext").map(str::to_owned),
        ssid: u32::try_from(number("ssid")).unwrap_or(0),
        tcontext: fields.plain("tcontext").map(str::to_owned),
        tsid: u32::try_from(number("tsid")).unwrap_or(0),
        tclass,
        permissive: verdict == Verdict::Denied && number("permissive") == 1,
        errno: 0,
        generation: 0,
        repeated: number("repeated"),
        withheld: fields.plain("withheld").map(str::to_owned),
    })
}

/// Reads this program's own report of lost events: `17 events: the ring buffer was full`.
fn own_loss(text: &str, time: u64) -> Option<Entry> {
    let (count, why) = text.split_once(" events: ")?;
    let reason = Reason::ALL.into_iter().find(|reason| why.starts_with(reason.text()))?;
    Some(Entry::Lost(Lost { time, count: count.parse().ok()?, reason }))
}

/// The number of records that the kernel says it left out. It says `kauditd_printk_skb: 31 callbacks suppressed`, or,
/// each time a limit or the backlog makes it drop some, `audit_lost=7` (audit_log_lost; that count is since boot).
fn kernel_loss(line: &str) -> Option<u64> {
    if let Some((before, _)) = line.split_once(" callbacks suppressed") {
        return line.contains("audit").then(|| before.rsplit(' ').next()?.parse().ok()).flatten();
    }
    let (_, rest) = line.split_once("audit_lost=")?;
    let count: u64 = rest.split(' ').next()?.parse().ok()?;
    (count > 0).then_some(1)
}

/// The `KEY=VALUE` words of a record. If a key comes twice, the first counts.
struct Fields<'t>(Vec<(&'t str, &'t str)>);

impl<'t> Fields<'t> {
    /// Splits a record into words. What auditd adds behind a group separator (log_format = ENRICHED) comes last.
    fn of(text: &'t str) -> Self {
        let words = text.split(|c: char| c.is_whitespace() || c == '\x1d');
        Self(words.filter_map(|word| word.trim_end_matches('\'').split_once('=')).collect())
    }

    /// A value as it is written.
    fn plain(&self, key: &str) -> Option<&'t str> {
        self.0.iter().find(|(own, _)| *own == key).map(|(_, value)| *value)
    }

    fn number(&self, key: &str) -> Option<u64> {
        let text = self.plain(key)?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// A name that a process chose: it is quoted, or in hexadecimal.
    fn name(&self, key: &str) -> Untrusted {
        let Some(text) = self.plain(key) else { return Untrusted::default() };
        match text.strip_prefix('"') {
            Some(quoted) => Untrusted::new(quoted.strip_suffix('"').unwrap_or(quoted)),
            None => Untrusted::new(unhex(text).unwrap_or_else(|| text.as_bytes().to_vec())),
        }
    }

    fn has(&self, key: &str) -> bool {
        self.plain(key).is_some()
    }

    /// Addresses and ports, if the record has any. The kernel writes the name of an interface as it is.
    fn endpoints(&self) -> Option<Endpoints> {
        let address = |key| self.plain(key).and_then(|text| text.parse().ok());
        let port = |key| self.plain(key).and_then(|text| text.parse().ok());
        let known = Endpoints {
            laddr: address("laddr"),
            lport: port("lport"),
            faddr: address("faddr"),
            fport: port("fport"),
            saddr: address("saddr"),
            src: port("src"),
            daddr: address("daddr"),
            dest: port("dest"),
            netif: self.plain("netif").map(Untrusted::new).unwrap_or_default(),
        };
        (known != Endpoints::default()).then_some(known)
    }

    /// The object, as far as the record describes it (dump_common_audit_data).
    fn object(&self) -> Object {
        let place = || {
            let ino = self.number("ino")?;
            self.has("dev").then(|| Place { dev: self.name("dev"), ino })
        };
        let small = |key| self.number(key).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        if self.has("capability") {
            Object::Capability { capability: small("capability") }
        } else if let Some(command) = self.number("ioctlcmd") {
            let ioctlcmd = u16::try_from(command).unwrap_or(u16::MAX);
            Object::Ioctl { path: self.name("path"), place: place(), ioctlcmd }
        } else if self.has("path") {
            Object::Path { path: self.name("path"), place: place() }
        } else if self.has("opid") {
            Object::Task { opid: small("opid"), ocomm: self.name("ocomm") }
        } else if self.has("kmod") {
            Object::Module { kmod: self.name("kmod") }
        } else if self.has("anonclass") {
            Object::Anonymous { anonclass: self.name("anonclass") }
        } else if let Some(key) = self.plain("ipc_key") {
            Object::Ipc { ipc_key: key.parse().unwrap_or(0) }
        } else if let Some(endpoints) = self.endpoints() {
            Object::Network(Box::new(endpoints))
        } else if self.has("name") || self.has("ino") {
            Object::Inode { name: self.name("name"), place: place() }
        } else {
            Object::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "type=AVC msg=audit(1700000001.234:17): avc:  denied  { read open } for  pid=12 comm=\"cat\" \
        path=\"/etc/shadow\" dev=\"sda1\" ino=13 scontext=user_u:user_r:user_t:s0-s0:c0.c9 \
        tcontext=system_u:object_r:shadow_t:s0 tclass=file permissive=1";

    fn read(line: &str) -> Denial {
        match parse(line) {
            Some(Entry::Avc(denial)) => denial,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn reads_a_record_of_the_kernel_wherever_it_was_written() {
        let denial = read(RECORD);
        assert_eq!((denial.time, denial.pid, denial.permissive), (1_700_000_001_234, 12, true));
        assert_eq!((denial.permissions.join(" "), denial.comm.bytes()), ("read open".to_owned(), &b"cat"[..]));
        assert_eq!(denial.scontext.as_deref(), Some("user_u:user_r:user_t:s0-s0:c0.c9"));
        assert!(matches!(&denial.object, Object::Path { path, place: Some(place) }
            if path.bytes() == b"/etc/shadow" && place.ino == 13 && place.dev.bytes() == b"sda1"));
        let (_, text) = RECORD.split_once("msg=").unwrap();
        for form in [
            format!("[   12.345678] audit: type=1400 {text}"),
            format!("Nov 21 08:00:01 host kernel: audit: type=1400 {text}"),
            format!("{RECORD}\x1dSUID=\"root\" comm=\"other\""),
            format!("  {RECORD}\r\n"),
        ] {
            assert_eq!(read(&form), denial, "{form}");
        }
    }

    /// What this program writes, as the kernel's audit and as auditd have it.
    #[test]
    fn reads_back_every_denial_that_this_program_writes() {
        let place = || Some(Place { dev: Untrusted::new("sda1"), ino: 7 });
        let name = |text: &str| Untrusted::new(text);
        for object in [
            Object::None,
            Object::Inode { name: name("two words"), place: place() },
            Object::Inode { name: name("new"), place: None },
            Object::Path { path: name("/srv/a'b\n"), place: place() },
            Object::Ioctl { path: name("/dev/tty1"), place: place(), ioctlcmd: 0x5412 },
            Object::Capability { capability: 12 },
            Object::Task { opid: 1, ocomm: name("init") },
            Object::Module { kmod: name("fs-nothing") },
            Object::Anonymous { anonclass: name("[userfaultfd]") },
            Object::Ipc { ipc_key: -7 },
            Object::Network(Box::new(Endpoints {
                saddr: "::1".parse().ok(),
                dest: Some(8080),
                netif: name("fe"),
                ..Endpoints::default()
            })),
        ] {
            let text = RECORD.replace(" path=\"/etc/shadow\" dev=\"sda1\" ino=13", "");
            let denial = Denial { object, repeated: 41, comm: name("ABBA"), ..read(&text) };
            let line = format!(
                "type=USER_AVC msg=audit(1700000001.234:9): pid=5 uid=0 msg='{denial} exe=\"/t\" sauid=0 addr=? terminal=?'"
            );
            assert_eq!(read(&line), denial, "{line}");
            let json = serde_json::to_string(&Entry::Avc(denial.clone())).unwrap();
            assert_eq!(read(&json), denial, "{json}");
        }
        let without = RECORD.replace("scontext=user_u:user_r:user_t:s0-s0:c0.c9", "ssid=40");
        assert_eq!((read(&without).scontext, read(&without).ssid), (None, 40));
    }

    #[test]
    fn hears_of_what_was_lost() {
        let lost = |line: &str| match parse(line) {
            Some(Entry::Lost(lost)) => (lost.count, lost.reason),
            other => panic!("{line}: {other:?}"),
        };
        for reason in Reason::ALL {
            let line = format!(
                "type=USER_SELINUX_ERR msg=audit(1.000:2): pid=5 msg='avc:  lost 17 events: {} exe=\"/t\"'",
                reason.text()
            );
            assert_eq!(lost(&line), (17, reason));
        }
        assert_eq!(lost("[ 3.1] kauditd_printk_skb: 31 callbacks suppressed"), (31, Reason::KernelAudit));
        assert_eq!(lost("audit: audit_lost=7 audit_rate_limit=0 audit_backlog_limit=64"), (1, Reason::KernelAudit));
        assert_eq!(parse("audit: audit_lost=0 audit_rate_limit=0 audit_backlog_limit=64"), None);
        assert_eq!(parse("net_ratelimit: 31 callbacks suppressed"), None);
    }

    #[test]
    fn takes_no_record_with_control_characters_in_names_of_policies() {
        let json = serde_json::to_string(&Entry::Avc(read(RECORD))).unwrap();
        for name in ["user_t", "shadow_t", "tclass=file", "read open"] {
            let hostile = RECORD.replace(name, &format!("{name}\x1b[2J"));
            assert_eq!(parse(&hostile), None, "{hostile:?}");
        }
        for name in ["user_t", "shadow_t", "\"file", "\"open"] {
            let hostile = json.replace(name, &format!("{name}\\u001b[2J"));
            assert!(hostile != json && parse(&hostile).is_none(), "{hostile}");
        }
    }

    #[test]
    fn takes_a_time_after_the_year_9999_for_none() {
        const LAST: u64 = 253_402_300_799;
        for (seconds, time) in [(LAST, LAST * 1000 + 234), (LAST + 1, 0), (u64::MAX / 1000, 0)] {
            let denial = read(&RECORD.replace("1700000001", &seconds.to_string()));
            assert_eq!(denial.time, time);
            let json = serde_json::to_string(&Entry::Avc(denial.clone())).unwrap();
            assert_eq!(read(&json), denial, "{json}");
        }
    }

    #[test]
    fn takes_nothing_else_for_a_denial() {
        for line in [
            "",
            "{",
            "{\"type\":\"avc\"}",
            "avc:",
            "avc:  denied",
            "avc:  denied  { read",
            "avc:  denied  { read } for  pid=1",
            "avc:  seized  { read } for  pid=1 tclass=file",
            "type=SYSCALL msg=audit(1700000001.234:17): arch=c000003e syscall=257 success=no",
            "avc:  lost many events: x",
            "audit(99999999999999999999.1:2)",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
        let hostile =
            "avc: denied { read } for comm=\"a path=\"b pid=99999999999 tclass=file audit(18446744073709551615.1:1)";
        let denial = read(hostile);
        assert_eq!((denial.time, denial.pid), (0, 0));
    }
}
