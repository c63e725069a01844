//! A log entry as one line for people.

use super::{
    Denial, Entry, Load, Untrusted, avc,
    avc::{Object, Verdict},
    clock::{self, Zone},
    untrusted::for_people,
};

/// Whether the line is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Words are coloured, for a terminal.
    On,
    /// Plain text.
    Off,
}

/// Colours of the verdicts, as SGR escape codes.
const RED: u8 = 31;
const GREEN: u8 = 32;
const YELLOW: u8 = 33;

/// The line, without a newline: time, verdict, the rule that is missing, the object, the process.
#[must_use]
pub fn line(entry: &Entry, colour: Colour, zone: Zone) -> String {
    let time = clock::text(entry.time(), zone);
    match entry {
        Entry::Avc(denial) => format!("{time} {}", avc_line(denial, colour)),
        Entry::Lost(lost) => {
            format!("{time} {} {} events: {}", colour.paint("lost", YELLOW), lost.count, lost.reason.text())
        }
        Entry::Load(load) => format!("{time} {}", load_line(load, colour)),
    }
}

fn load_line(Load { generation, mode, success, cause, .. }: &Load, colour: Colour) -> String {
    let (refused, cause) = (colour.paint("refused", RED), cause.as_deref().unwrap_or_default());
    let Some((generation, mode)) = generation.as_ref().zip(mode.as_ref()) else {
        return format!("{refused} what was offered as the fleet's: {cause}");
    };
    if *success {
        format!("{} generation {generation}: {mode}", colour.paint("loaded", GREEN))
    } else {
        format!("{refused} generation {generation}, {mode}: {cause}")
    }
}

fn avc_line(denial: &Denial, colour: Colour) -> String {
    let verdict = match (denial.verdict, denial.permissive) {
        (Verdict::Denied, false) => colour.paint("denied", RED),
        (Verdict::Denied, true) => colour.paint("permitted", YELLOW),
        (Verdict::Granted, _) => colour.paint("granted", GREEN),
    };
    let source = party(denial.scontext.as_deref(), denial.ssid);
    let target = party(denial.tcontext.as_deref(), denial.tsid);
    let mut line = format!("{verdict} {source} {target}:{} {{ {} }}", denial.tclass, denial.permissions.join(" "));
    let object = object(&denial.object);
    if !object.is_empty() {
        line += &format!(" {object}");
    }
    if let Some(withheld) = &denial.withheld {
        line += &format!(", for {}", for_people(withheld));
    }
    line += &format!(", by {}[{}]", denial.comm.for_people(), denial.pid);
    if denial.repeated > 0 {
        line += &format!(", {} more like this within a second", denial.repeated);
    }
    line
}

/// The type of a context, and its level unless it is the lowest: the level may be the reason.
fn party(context: Option<&str>, sid: u32) -> String {
    let Some(context) = context else { return format!("sid {sid}") };
    let mut fields = context.splitn(4, ':').skip(2);
    match (fields.next(), fields.next()) {
        (Some(kind), None | Some("s0")) => kind.to_owned(),
        (Some(kind), Some(level)) => format!("{kind}:{level}"),
        (None, _) => context.to_owned(),
    }
}

/// What is known of an object. Empty if the rule in the line names it already.
#[must_use]
pub fn object(object: &Object) -> String {
    let named = |name: &Untrusted, place: &Option<avc::Place>| match place {
        Some(place) if name.is_empty() => format!("inode {} of {}", place.ino, place.dev.for_people()),
        Some(place) => format!("{} (inode {} of {})", name.for_people(), place.ino, place.dev.for_people()),
        None => name.for_people(),
    };
    match object {
        Object::None | Object::Capability { .. } => String::new(),
        Object::Ipc { ipc_key } => format!("key {ipc_key}"),
        Object::Inode { name, place } => named(name, place),
        Object::Path { path, .. } => path.for_people(),
        Object::Ioctl { path, ioctlcmd, .. } => format!("{} ioctl 0x{ioctlcmd:x}", path.for_people()),
        Object::Task { opid, ocomm } => format!("{}[{opid}]", ocomm.for_people()),
        Object::Module { kmod: name } | Object::Anonymous { anonclass: name } | Object::Named { name } => {
            name.for_people()
        }
        Object::Network(endpoints) => endpoints.to_string().trim_start().to_owned(),
    }
}

impl Colour {
    fn paint(self, word: &str, code: u8) -> String {
        match self {
            Self::On => format!("\x1b[{code}m{word}\x1b[0m"),
            Self::Off => word.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_abi::enforcer::{TG_OBJECT_INODE, TG_OBJECT_PATH, tg_event};

    use super::*;
    use crate::{Lost, Reason};

    fn denial(object: u32, name: &[u8]) -> Denial {
        let mut event =
            tg_event { denied: 3, class: 8, tgid: 12, source: 40, inode: 13, object, ..tg_event::default() };
        let fill = |to: &mut [std::ffi::c_char], from: &[u8]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from.cast_signed());
        };
        fill(&mut event.name, name);
        fill(&mut event.command, b"c\x1b[2Jat");
        fill(&mut event.filesystem, b"sda1");
        let context = |sid| Some(if sid == 40 { "u:r:user_t:s0" } else { "u:object_r:shadow_t:s0:c1,c2" }.into());
        Denial::new(&event, 0, context)
    }

    #[test]
    fn says_in_one_line_which_rule_is_missing_and_for_whom() {
        let mut denial = denial(TG_OBJECT_PATH, b"shadow\0etc\0");
        let rest = "user_t shadow_t:s0:c1,c2:file { ioctl read } /etc/shadow, by c\\u{1b}[2Jat[12]";
        let mut text = |change: &dyn Fn(&mut Denial)| {
            change(&mut denial);
            line(&Entry::Avc(denial.clone()), Colour::Off, Zone::Utc)
        };
        assert_eq!(text(&|_| ()), format!("1970-01-01T00:00:00.000Z denied {rest}"));
        assert_eq!(text(&|denial| denial.permissive = true), format!("1970-01-01T00:00:00.000Z permitted {rest}"));
        let repeated = text(&|denial| denial.repeated = 41);
        assert!(repeated.ends_with(", 41 more like this within a second"), "{repeated}");
    }

    #[test]
    fn colours_for_terminals_only() {
        let entry = Entry::Avc(denial(TG_OBJECT_INODE, b"x\x1b[1m"));
        assert!(!line(&entry, Colour::Off, Zone::Utc).contains('\x1b'));
        assert!(line(&entry, Colour::On, Zone::Utc).contains(" \x1b[31mdenied\x1b[0m user_t "));
        assert_eq!(line(&entry, Colour::On, Zone::Utc).matches('\x1b').count(), 2);
    }

    #[test]
    fn names_what_has_no_path_by_inode_and_what_has_no_context_by_sid() {
        let mut denial = denial(TG_OBJECT_INODE, b"");
        denial.scontext = None;
        let text = line(&Entry::Avc(denial), Colour::Off, Zone::Utc);
        assert!(text.contains(" denied sid 40 ") && text.contains("} inode 13 of sda1, by "), "{text}");
    }

    #[test]
    fn tells_what_was_lost() {
        let lost = Entry::Lost(Lost { time: 1000, count: 9, reason: Reason::RingBuffer });
        assert_eq!(
            line(&lost, Colour::Off, Zone::Utc),
            "1970-01-01T00:00:01.000Z lost 9 events: the ring buffer was full"
        );
    }
}
