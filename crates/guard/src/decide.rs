//! What is asked and answered, and the answer by the rules alone: what the evaluator must say, too.

use tollgate_abi::guard::{TG_GUARD_ANY, TG_GUARD_DEPTH};

use crate::{
    call::{Act, Bit, FileCall, Id, Place, PlainCall},
    database::Database,
    digest::Digest,
    hash::{ANY_NUMBER, is_number, stem},
    item::{Class, Mode, Until},
    name::Name,
};

/// What a guarded process is about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// It executes this content; `None`: it is not known.
    Exec(Option<Digest>),
    /// It takes this user id.
    Setuid(u32),
    /// It takes this group id.
    Setgid(u32),
    /// It sets these bits of a file's mode.
    Chmod(u32),
    /// It makes a call on the file with this path.
    File(FileCall, Name),
    /// It makes another call.
    Plain(PlainCall),
}

/// A question to the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Why the process is guarded.
    pub class: Class,
    /// The content of its program; `None`: it is not known.
    pub caller: Option<Digest>,
    /// What it has done.
    pub history: Until,
    /// What it is about to do.
    pub asked: Asked,
}

/// The answer of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What becomes of the call if no rule allows it.
    pub mode: Mode,
    /// Whether the database has the caller.
    pub caller_known: bool,
    /// Whether it has what is executed.
    pub target_known: bool,
    /// Whether rules allow the call.
    pub allowed: bool,
    /// Whether what is executed is not guarded any more.
    pub free: bool,
}

impl Answer {
    /// Whether the call is denied.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        !self.allowed && self.mode == Mode::Enforce
    }
}

impl Database {
    /// Answers a question by the rules.
    #[must_use]
    pub fn decide(&self, question: &Question) -> Answer {
        let name = |digest: Option<Digest>| digest.and_then(|digest| self.name_of(&digest));
        let caller = name(question.caller);
        let target = match question.asked {
            Asked::Exec(target) => name(target),
            _ => None,
        };
        let mode = caller.and_then(|caller| self.program(caller)).map(|program| program.mode);
        let allowed = caller.and_then(|caller| self.allowing(caller, question, target));
        Answer {
            mode: mode.unwrap_or_else(|| self.default_mode(question.class)),
            caller_known: caller.is_some(),
            target_known: target.is_some(),
            allowed: allowed.is_some(),
            free: allowed.unwrap_or(false),
        }
    }

    /// `None`: no rule allows it; else whether what is executed is free.
    fn allowing(&self, caller: &Name, question: &Question, target: Option<&Name>) -> Option<bool> {
        let holds = |until: Until| until.bits() & question.history.bits() == 0;
        let has = |wanted: &Act| self.until(caller, wanted).is_some_and(holds);
        let id = |of: fn(Id) -> Act, id: u32| has(&of(Id::Any)) || id != TG_GUARD_ANY && has(&of(Id::One(id)));
        let allowed = match &question.asked {
            Asked::Exec(_) => {
                return self.acts(caller).find_map(|(act, until)| match act {
                    Act::Exec { program, free } if Some(program) == target && holds(until) => Some(*free),
                    _ => None,
                });
            }
            Asked::Setuid(number) => id(Act::Setuid, *number),
            Asked::Setgid(number) => id(Act::Setgid, *number),
            Asked::Chmod(bits) => {
                let one = |bit| bits & bit as u32 == 0 || has(&Act::Chmod(bit));
                let others = bits & !(Bit::User as u32 | Bit::Group as u32);
                others == 0 && one(Bit::User) && one(Bit::Group)
            }
            Asked::File(call, path) => {
                let places = places(path).into_iter().chain([Place::Any]);
                places.into_iter().any(|place| has(&Act::File(*call, place)))
            }
            Asked::Plain(call) => has(&Act::Plain(*call)),
        };
        allowed.then_some(false)
    }
}

/// The places of rules that a path is in, but `any`.
pub(crate) fn places(path: &Name) -> Vec<Place> {
    let bytes = path.as_bytes();
    let ends = (1..bytes.len()).filter(|at| bytes[*at] == b'/');
    let above: Vec<Place> = ends.filter_map(|at| in_rules(&bytes[..at])).map(Place::Below).collect();
    // Longer paths are unknown to the kernel.
    if bytes.iter().filter(|byte| **byte == b'/').count() > TG_GUARD_DEPTH as usize {
        return Vec::new();
    }
    let stem = stem(bytes).and_then(in_rules).map(Place::Stem);
    above.into_iter().chain(stem).chain(in_rules(bytes).map(Place::Is)).collect()
}

/// A path as rules have it; `None`: one of its components has the name that stands for numbers there.
fn in_rules(path: &[u8]) -> Option<Name> {
    let one = |name| match name {
        ANY_NUMBER => None,
        name if is_number(name) => Some(ANY_NUMBER),
        name => Some(name),
    };
    let components: Option<Vec<&[u8]>> = path.split(|byte| *byte == b'/').map(one).collect();
    Name::of(components?.join(&b'/')).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denies_what_no_rule_allows_and_an_unknown_content_above_all() {
        let [su, sh, other] = ["su", "sh", "other"].map(|content| Digest::of(content.as_bytes()));
        let text = format!(
            "program /su enforce {su}\nprogram /sh learn {sh}\nallow /su exec /sh free\nallow /su setuid 7\nallow /su chmod u+s"
        );
        let database = Database::parse(&text).unwrap();
        let ask =
            |caller, asked| database.decide(&Question { class: Class::Setuid, caller, history: Until::NEVER, asked });
        let granted = |asked| !ask(Some(su), asked).is_denied();
        assert!(ask(Some(su), Asked::Exec(Some(sh))).free);
        assert!(granted(Asked::Setuid(7)) && granted(Asked::Chmod(Bit::User as u32)));
        for asked in [
            Asked::Exec(Some(su)),
            Asked::Exec(Some(other)),
            Asked::Exec(None),
            Asked::Setuid(0),
            Asked::Chmod(Bit::Group as u32),
            Asked::Chmod(Bit::Group as u32 | Bit::User as u32),
            Asked::Chmod(0o777),
        ] {
            let text = format!("{asked:?}");
            assert!(!granted(asked), "{text}");
        }
        let learns = ask(Some(sh), Asked::Setuid(0));
        assert_eq!((learns.mode, learns.allowed), (Mode::Learn, false));
        let unknown = ask(None, Asked::Exec(Some(sh)));
        assert_eq!((unknown.mode, unknown.caller_known, unknown.allowed), (Mode::Learn, false, false));
    }
}
