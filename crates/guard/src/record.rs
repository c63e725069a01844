//! A call that no rule allows, as the log has it.

use std::{ffi::c_char, fmt};

use serde::{Deserialize, Serialize};
use tollgate_abi::guard::{
    TG_GUARD_CHMOD, TG_GUARD_EXEC, TG_GUARD_REGISTER, TG_GUARD_SET_GROUP, TG_GUARD_SET_USER, TG_GUARD_SETGID,
    TG_GUARD_SETUID, tg_guard_event,
};

use crate::{
    call::{Act, Bit, FileCall, Id, PlainCall},
    database::Database,
    digest::Digest,
    item::{Class, Item, Mode, Program, Rule, Until},
    name::Name,
};

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was denied.
    Denied,
    /// It was granted, and is reported.
    Warned,
    /// It was granted, and may be learnt.
    Learnt,
}

/// A call that no rule allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Time of the call, in milliseconds since 1970.
    pub time: u64,
    /// What became of it.
    pub verdict: Verdict,
    /// Why the process is guarded: `setuid` or `daemon`.
    pub class: String,
    /// Number of the process, its user, and its effective user.
    pub process: u32,
    #[expect(missing_docs, reason = "the name says it")]
    pub uid: u32,
    #[expect(missing_docs, reason = "the name says it")]
    pub euid: u32,
    /// Name of the process.
    pub command: String,
    /// The program: its name in the database, or its path.
    pub program: String,
    /// Digest of its content; none: it is not known.
    pub program_digest: Option<String>,
    /// The call, as rules name it.
    pub call: String,
    /// Its argument: a program, an id, bits or a path; empty: it has none.
    pub argument: String,
    /// What the process had done since its exec: `network`, `untrusted`, `identity`.
    #[serde(default)]
    pub history: Vec<String>,
    /// Of an exec, the digest of what is executed; none: it is not known.
    pub argument_digest: Option<String>,
    /// The file whose mode is changed.
    pub file: Option<String>,
}

impl Record {
    /// The record of an event. `booted` is when the machine started, in milliseconds since 1970.
    #[must_use]
    pub fn of(event: &tg_guard_event, database: &Database, booted: u64) -> Self {
        let [caller, target] = [event.caller, event.target].map(Digest::of_words);
        let name = |digest: Option<Digest>, path: &[c_char]| {
            let known = digest.and_then(|digest| database.name_of(&digest)).cloned();
            known.map_or_else(|| escaped(path), |name| name.to_string())
        };
        let named = |number: u32| {
            let file = FileCall::ALL.into_iter().find(|(call, _)| *call as u32 == number).map(|(_, name)| name);
            file.or_else(|| PlainCall::ALL.into_iter().find(|(call, _)| *call as u32 == number).map(|(_, name)| name))
        };
        let (call, argument) = match event.call {
            TG_GUARD_EXEC => ("exec", name(target, &event.object)),
            TG_GUARD_SETUID => ("setuid", event.value.to_string()),
            TG_GUARD_SETGID => ("setgid", event.value.to_string()),
            TG_GUARD_CHMOD => ("chmod", bits(event.value)),
            number if FileCall::ALL.iter().any(|(call, _)| *call as u32 == number) => {
                (named(number).unwrap_or_default(), path(event))
            }
            number => (named(number).unwrap_or("unknown"), String::new()),
        };
        let verdict = match Mode::of(event.mode) {
            _ if event.denied != 0 => Verdict::Denied,
            Some(Mode::Learn) => Verdict::Learnt,
            _ => Verdict::Warned,
        };
        Self {
            time: booted + event.time / 1_000_000,
            verdict,
            class: Class::of(event.class).map(|class| class.to_string()).unwrap_or_default(),
            process: event.process,
            uid: event.uid,
            euid: event.euid,
            command: escaped(&event.command),
            program: name(caller, &event.program),
            program_digest: caller.map(|digest| digest.to_string()),
            call: call.to_owned(),
            argument,
            argument_digest: target.map(|digest| digest.to_string()),
            history: Until::of(event.history).unwrap_or_default().names().into_iter().map(str::to_owned).collect(),
            file: (event.call == TG_GUARD_CHMOD).then(|| path(event)),
        }
    }

    /// The items that would allow the call: programs that the database lacks, then rules. `Err` says why none can.
    pub fn items(&self, database: &Database) -> Result<Vec<Item>, String> {
        let (caller, mut items) = self.program(&self.program, self.program_digest.as_deref(), database)?;
        let acts = match (self.call.as_str(), self.argument.as_str()) {
            ("exec", path) => {
                let (program, more) = self.program(path, self.argument_digest.as_deref(), database)?;
                // A program that executes itself is entered once.
                items.extend(more.into_iter().filter(|item| !items.contains(item)).collect::<Vec<_>>());
                vec![Act::Exec { program, free: false }]
            }
            ("setuid", id) => vec![Act::Setuid(self::id(id)?)],
            ("setgid", id) => vec![Act::Setgid(self::id(id)?)],
            ("chmod", "u+s") => vec![Act::Chmod(Bit::User)],
            ("chmod", "g+s") => vec![Act::Chmod(Bit::Group)],
            ("chmod", "ug+s") => vec![Act::Chmod(Bit::User), Act::Chmod(Bit::Group)],
            (call, "") if call.parse::<PlainCall>().is_ok() => vec![Act::Plain(call.parse()?)],
            (call, path) if call.parse::<FileCall>().is_ok() => match path.starts_with('/') {
                true => vec![Act::File(call.parse()?, path.parse()?)],
                false => return Err(format!("the path is too long for a rule, unless it is `{call} any`")),
            },
            (call, argument) => return Err(format!("`{call} {argument}` is no call that rules have")),
        };
        items.extend(acts.into_iter().map(|act| Item::Rule(Rule { caller: caller.clone(), act, until: Until::NEVER })));
        Ok(items)
    }

    /// The name of a program, and the item that enters it if the database lacks this content.
    fn program(&self, path: &str, digest: Option<&str>, database: &Database) -> Result<(Name, Vec<Item>), String> {
        let digest = digest.ok_or_else(|| {
            format!("the content of {path} is not known: it was being written to, or this kernel does not hash it")
        })?;
        let digest: Digest = digest.parse()?;
        if let Some(name) = database.name_of(&digest) {
            return Ok((name.clone(), Vec::new()));
        }
        let name: Name = path.parse()?;
        let mode = database.program(&name).map_or(Mode::Learn, |known| known.mode);
        let program = Program { mode, digests: [digest].into() };
        Ok((name.clone(), vec![Item::Program(name, program)]))
    }

    /// The command that would allow the call; `Err` says why none can.
    pub fn remedy(&self, database: &Database) -> Result<String, String> {
        let items = self.items(database)?;
        let quoted: String =
            items.iter().map(|item| format!(" '{}'", item.to_string().replace('\'', "'\\''"))).collect();
        Ok(format!("tollgate guard add{quoted}"))
    }

    /// The line of the log, with the word that begins it.
    #[must_use]
    pub fn line(&self, database: &Database) -> String {
        let remedy = match self.remedy(database) {
            Ok(command) => format!("this would allow it: {command}"),
            Err(why) => why,
        };
        format!("{} {self}; {remedy}", database.word())
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, process, command, uid, euid, call, argument, .. } = self;
        let verdict = match self.verdict {
            Verdict::Denied => "denied",
            Verdict::Warned => "granted with a warning",
            Verdict::Learnt => "granted while learning",
        };
        let program = if program.is_empty() { "unknown" } else { program };
        let after = match &self.history[..] {
            [] => String::new(),
            done => format!(", after {}", done.join(", ")),
        };
        let file = self.file.as_deref().map(|file| format!(" of {file}")).unwrap_or_default();
        write!(
            f,
            "{verdict}: no rule `{}`{file} (process {process} {command}, user {uid}, \
             effective user {euid}{after})",
            format!("allow {program} {call} {argument}").trim_end()
        )
    }
}

fn bits(value: u32) -> String {
    let letter = |bit, letter| if value & bit != 0 { letter } else { "" };
    format!("{}{}+s", letter(TG_GUARD_SET_USER, "u"), letter(TG_GUARD_SET_GROUP, "g"))
}

fn id(text: &str) -> Result<Id, String> {
    text.parse().map(Id::One).map_err(|_| format!("`{text}` is no id of a user or a group"))
}

/// The path whose components an event has, the last one first. One that is cut has no root.
fn path(event: &tg_guard_event) -> String {
    let path = word(&bytes(event));
    if event.cut != 0 { format!("...{path}") } else { path }
}

fn bytes(event: &tg_guard_event) -> Vec<u8> {
    let bytes: Vec<u8> = event.object.iter().take(event.length as usize).map(|byte| *byte as u8).collect();
    let components = bytes.split(|byte| *byte == 0).filter(|component| !component.is_empty()).rev();
    components.flat_map(|component| [b"/", component].concat()).collect()
}

/// The path of a program that has got privilege or has replaced another one, if that is what an event says. Longer paths than
/// an event has are cut, and nobody can say which file that is.
#[must_use]
pub fn registered(event: &tg_guard_event) -> Option<Vec<u8>> {
    (event.call == TG_GUARD_REGISTER && event.cut == 0).then(|| bytes(event))
}

/// The text up to the NUL, as one word of ASCII ([`Name`]).
fn escaped(text: &[c_char]) -> String {
    let bytes: Vec<u8> = text.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    word(&bytes)
}

fn word(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| match byte {
            // Rules have these for more than one file.
            b'\\' | b'*' | b'?' => format!("\\{byte:03o}"),
            byte if byte.is_ascii_graphic() => char::from(*byte).to_string(),
            byte => format!("\\{byte:03o}"),
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use tollgate_abi::guard::{TG_GUARD_BY_SETUID, TG_GUARD_ENFORCE, TG_GUARD_LEARN};

    use super::*;

    fn text<const LENGTH: usize>(text: &str) -> [c_char; LENGTH] {
        let mut chars = [0; LENGTH];
        chars.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte as c_char);
        chars
    }

    /// An event of a program /bin/weak, whose content is its name. Components of a path end with NULs.
    pub(crate) fn event(call: u32, value: u32, object: &str) -> tg_guard_event {
        let digest = |path: &str| Digest::of(path.as_bytes()).words();
        tg_guard_event {
            time: 2_000_000,
            call,
            value,
            mode: TG_GUARD_LEARN,
            class: TG_GUARD_BY_SETUID,
            process: 7,
            uid: 1000,
            caller: digest("/bin/weak"),
            target: if call == TG_GUARD_EXEC { digest(object) } else { [0; 8] },
            command: text("weak"),
            program: text("/bin/weak"),
            object: text(object),
            length: object.len() as u32,
            ..tg_guard_event::default()
        }
    }

    #[test]
    fn names_the_rule_that_is_missing_and_the_command_that_adds_it() {
        let weak = Digest::of(b"/bin/weak");
        let database = Database::parse(&format!("word BOP\nprogram /sbin/weak enforce {weak}")).unwrap();
        let event = tg_guard_event { mode: TG_GUARD_ENFORCE, denied: 1, ..event(TG_GUARD_EXEC, 0, "/bin/a b's") };
        let record = Record::of(&event, &database, 5);
        let digest = Digest::of(b"/bin/a b's");
        assert_eq!(record.time, 7);
        assert_eq!(
            record.line(&database),
            format!(
                "BOP denied: no rule `allow /sbin/weak exec /bin/a\\040b's` (process 7 weak, user 1000, effective user 0); \
                 this would allow it: tollgate guard add 'program /bin/a\\040b'\\''s learn {digest}' \
                 'allow /sbin/weak exec /bin/a\\040b'\\''s'"
            )
        );
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
    }

    #[test]
    fn tells_users_and_bits_and_what_cannot_be_allowed() {
        let database = Database::default();
        let line = |event| Record::of(&event, &database, 0).line(&database);
        let setuid = line(event(TG_GUARD_SETUID, 0, ""));
        assert!(setuid.starts_with("GUARD granted while learning: no rule `allow /bin/weak setuid 0` ("), "{setuid}");
        let chmod = line(event(TG_GUARD_CHMOD, TG_GUARD_SET_USER | TG_GUARD_SET_GROUP, "sh\n"));
        assert!(chmod.contains("`allow /bin/weak chmod ug+s` of /sh\\012 ("), "{chmod}");
        assert!(chmod.contains("'allow /bin/weak chmod u+s' 'allow /bin/weak chmod g+s'"), "{chmod}");
        let unknown = tg_guard_event { target: [0; 8], ..event(TG_GUARD_EXEC, 0, "/tmp/x") };
        assert!(line(unknown).ends_with(
            "; the content of /tmp/x is not known: it was being written to, or this kernel does not hash it"
        ));
    }
}
