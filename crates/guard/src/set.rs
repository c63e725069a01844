//! Sets: what a distribution's programs do, without the contents that they have on a machine. A set is text as a database's,
//! but `program PATH MODE` has no digest, and users and groups may have names. The machine that takes it says the rest.

use std::collections::BTreeMap;

use crate::{
    database::{Database, ItemError},
    digest::Digest,
    item::{Item, Program},
    name::Name,
    text::TextError,
};

/// What a machine says of what a set names.
pub trait Machine {
    /// The program at a path: its name, which has no links, and its content. `None`: it is not installed.
    fn program(&self, path: &Name) -> Option<(Name, Digest)>;
    /// The number of a user.
    fn user(&self, name: &str) -> Option<u32>;
    /// The number of a group.
    fn group(&self, name: &str) -> Option<u32>;
}

/// A set as one machine has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Its programs, with their contents, and their rules.
    pub database: Database,
    /// Lines about programs, users and groups that the machine lacks.
    pub left: Vec<String>,
}

impl Set {
    /// Reads a set. Programs come before the rules that name them.
    pub fn read(text: &str, machine: &impl Machine) -> Result<Self, TextError> {
        let mut reader = Reader { database: Database::default(), names: BTreeMap::new(), machine };
        let mut left = Vec::new();
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match reader.line(text) {
                Ok(true) => {}
                Ok(false) => left.push(text.to_owned()),
                Err(message) => return Err(TextError { line, message }),
            }
        }
        Ok(Self { database: reader.database, left })
    }
}

struct Reader<'m, M> {
    database: Database,
    /// The names that programs have on this machine, by the paths of the set; `None`: they are not installed.
    names: BTreeMap<Name, Option<Name>>,
    machine: &'m M,
}

impl<M: Machine> Reader<'_, M> {
    /// Enters a line. Returns false if this machine lacks what it names.
    fn line(&mut self, text: &str) -> Result<bool, String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words[..] {
            ["program", path, mode] => self.program(path.parse()?, mode),
            ["allow", ..] => match self.rule(&words)? {
                Some(line) => self.enter(line.parse()?).map(|()| true),
                None => Ok(false),
            },
            _ => Err(format!("`{text}` is no line of a set: one is `program PATH MODE` or `allow PATH CALL ARGUMENT`")),
        }
    }

    fn program(&mut self, path: Name, mode: &str) -> Result<bool, String> {
        let mode = mode.parse()?;
        let found = self.machine.program(&path);
        self.names.insert(path, found.as_ref().map(|(name, _)| name.clone()));
        let Some((name, digest)) = found else { return Ok(false) };
        self.enter(Item::Program(name, Program { mode, digests: [digest].into() }))?;
        Ok(true)
    }

    fn enter(&mut self, item: Item) -> Result<(), String> {
        self.database.enter(item).map(drop).map_err(|cause| cause.to_string())
    }

    /// A rule with the names and numbers of this machine; `None`: it lacks one.
    fn rule(&self, words: &[&str]) -> Result<Option<String>, String> {
        let mut line: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let programs = if words.get(2) == Some(&"exec") { &[1, 3][..] } else { &[1] };
        for at in programs.iter().copied().filter(|at| *at < words.len()) {
            let path: Name = words[at].parse()?;
            let known = self.names.get(&path).ok_or_else(|| ItemError::NoProgram(path).to_string())?;
            let Some(name) = known else { return Ok(None) };
            line[at] = name.to_string();
        }
        let number = match (words.get(2), words.get(3)) {
            (Some(&"setuid"), Some(user)) if is_name(user) => self.machine.user(user),
            (Some(&"setgid"), Some(group)) if is_name(group) => self.machine.group(group),
            _ => return Ok(Some(line.join(" "))),
        };
        line[3] = match number {
            Some(number) => number.to_string(),
            None => return Ok(None),
        };
        Ok(Some(line.join(" ")))
    }
}

/// Whether a word of a rule is the name of a user or a group, and no number.
fn is_name(word: &str) -> bool {
    word != "any" && !word.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It has /usr/bin/su, by /bin/su, too, and the user mail.
    struct Small;

    impl Machine for Small {
        fn program(&self, path: &Name) -> Option<(Name, Digest)> {
            let path = path.to_string();
            let is_there = ["/bin/su", "/usr/bin/su", "/usr/bin/dash"].contains(&path.as_str());
            let real = path.replacen("/bin/su", "/usr/bin/su", usize::from(path == "/bin/su"));
            is_there.then(|| (real.parse().unwrap(), Digest::of(real.as_bytes())))
        }

        fn user(&self, name: &str) -> Option<u32> {
            (name == "mail").then_some(8)
        }

        fn group(&self, _: &str) -> Option<u32> {
            None
        }
    }

    #[test]
    fn has_the_contents_and_numbers_of_the_machine_and_leaves_what_it_lacks() {
        let text = "# a set\n\nprogram /bin/su enforce\nprogram /usr/bin/dash learn\nprogram /usr/bin/zsh learn\n\
                    allow /bin/su exec /usr/bin/dash free\nallow /bin/su exec /usr/bin/zsh free\nallow /bin/su setuid mail\n\
                    allow /bin/su setgid mail\nallow /bin/su setuid any until network\nallow /bin/su setuid 7\n\
                    allow /bin/su write /run/x.??????\n";
        let set = Set::read(text, &Small).unwrap();
        let [su, dash] = ["/usr/bin/su", "/usr/bin/dash"].map(|path| Digest::of(path.as_bytes()));
        let expected = format!(
            "program /usr/bin/dash learn {dash}\nprogram /usr/bin/su enforce {su}\nallow /usr/bin/su exec /usr/bin/dash free\n\
             allow /usr/bin/su setuid 7\nallow /usr/bin/su setuid 8\nallow /usr/bin/su setuid any until network\n\
             allow /usr/bin/su write /run/x.??????\n"
        );
        assert!(set.database.to_string().ends_with(&expected), "{}", set.database);
        let left = ["program /usr/bin/zsh learn", "allow /bin/su exec /usr/bin/zsh free", "allow /bin/su setgid mail"];
        assert_eq!(set.left, left);
    }

    #[test]
    fn refuses_what_a_set_cannot_have() {
        for (text, part) in [
            ("\nword BOP", "line 2: `word BOP` is no line of a set"),
            ("program /bin/su sometimes", "use one of off, learn, warn, enforce"),
            ("allow /bin/su mount", "no program /bin/su"),
            (
                "program /bin/su learn\nallow /bin/su exec /usr/bin/dash",
                "line 2: the database has no program /usr/bin/dash",
            ),
            ("program /bin/su learn\nallow /bin/su eat", "a call is"),
        ] {
            let error = Set::read(text, &Small).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
