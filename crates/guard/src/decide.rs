//! What is asked and answered, and the answer by the rules alone: what the evaluator must say, too.

use tollgate_abi::guard::TG_GUARD_ANY_ID;

use crate::{
    database::Database,
    digest::Digest,
    item::{Act, Bit, Class, Id, Mode},
    name::Name,
};

/// What a guarded process is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It executes this content; `None`: it is not known.
    Exec(Option<Digest>),
    /// It takes this user id.
    Setuid(u32),
    /// It sets these bits of a file's mode.
    Chmod(u32),
}

/// A question to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Why the process is guarded.
    pub class: Class,
    /// The content of its program; `None`: it is not known.
    pub caller: Option<Digest>,
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
        let allowed = caller.and_then(|caller| self.allowing(caller, question.asked, target));
        Answer {
            mode: mode.unwrap_or_else(|| self.default_mode(question.class)),
            caller_known: caller.is_some(),
            target_known: target.is_some(),
            allowed: allowed.is_some(),
            free: allowed.unwrap_or(false),
        }
    }

    /// `None`: no rule allows it; else whether what is executed is free.
    fn allowing(&self, caller: &Name, asked: Asked, target: Option<&Name>) -> Option<bool> {
        let has = |wanted: &Act| self.acts(caller).any(|act| act == wanted);
        match asked {
            Asked::Exec(_) => self.acts(caller).find_map(|act| match act {
                Act::Exec { program, free } if Some(program) == target => Some(*free),
                _ => None,
            }),
            Asked::Setuid(id) => {
                let allowed = has(&Act::Setuid(Id::Any)) || id != TG_GUARD_ANY_ID && has(&Act::Setuid(Id::One(id)));
                allowed.then_some(false)
            }
            Asked::Chmod(bits) => {
                let one = |bit| bits & bit as u32 == 0 || has(&Act::Chmod(bit));
                let others = bits & !(Bit::User as u32 | Bit::Group as u32);
                (others == 0 && one(Bit::User) && one(Bit::Group)).then_some(false)
            }
        }
    }
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
        let ask = |caller, asked| database.decide(&Question { class: Class::Setuid, caller, asked });
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
            assert!(!granted(asked), "{asked:?}");
        }
        let learns = ask(Some(sh), Asked::Setuid(0));
        assert_eq!((learns.mode, learns.allowed), (Mode::Learn, false));
        let unknown = ask(None, Asked::Exec(Some(sh)));
        assert_eq!((unknown.mode, unknown.caller_known, unknown.allowed), (Mode::Learn, false, false));
    }
}
