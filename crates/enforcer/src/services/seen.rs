//! What was seen confined, and the policy that was in force: kept over starts of the machine, so that what is lost is noticed.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// The file, in the folder of notes.
const NAME: &str = "confined";
/// So many programs are remembered.
const MOST: usize = 4096;

/// A policy that is or was in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Its SHA-256, in hexadecimal digits.
    pub digest: String,
    /// What the kernel calls the machine's run.
    pub boot: String,
}

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The type of the domain in which a program ran, by its unit and path.
    programs: BTreeMap<(String, PathBuf), String>,
    /// The policy that was in force last, and in which run of the machine.
    policy: Option<InForce>,
}

impl Seen {
    /// Reads what a folder has; nothing where there is no file.
    pub fn read(folder: &Path) -> io::Result<Self> {
        match fs::read_to_string(folder.join(NAME)) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            other => Ok(Self::parse(&other?)),
        }
    }

    /// What lines say: `policy SHA-256 BOOT`, `program UNIT TYPE PATH`. Another says nothing.
    fn parse(text: &str) -> Self {
        let mut seen = Self::default();
        for line in text.lines() {
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("policy"), Some(digest), Some(boot), None) => {
                    seen.policy = Some(InForce { digest: digest.to_owned(), boot: boot.to_owned() });
                }
                (Some("program"), Some(unit), Some(domain), Some(path)) => {
                    seen.programs.insert((unit.to_owned(), path.into()), domain.to_owned());
                }
                _ => {}
            }
        }
        seen
    }

    /// The lines.
    #[must_use]
    pub fn text(&self) -> String {
        let policy = self.policy.iter().map(|InForce { digest, boot }| format!("policy {digest} {boot}\n"));
        let programs = self.programs.iter();
        let programs = programs.map(|((unit, path), domain)| format!("program {unit} {domain} {}\n", path.display()));
        policy.chain(programs).collect()
    }

    /// Writes them to a folder, in place of what is there.
    pub fn write(text: &str, folder: &Path) -> io::Result<()> {
        let beside = folder.join("confined.new");
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, folder.join(NAME))
    }

    /// Remembers that a program of a unit runs in a domain; whether that is new.
    pub fn see(&mut self, unit: &str, program: &Path, domain: &str) -> bool {
        let tellable = !unit.contains([' ', '\n']) && program.to_str().is_some_and(|path| !path.contains('\n'));
        let key = (unit.to_owned(), program.to_owned());
        if !tellable || self.programs.get(&key).is_some_and(|known| known == domain) || self.programs.len() >= MOST {
            return false;
        }
        self.programs.insert(key, domain.to_owned());
        true
    }

    /// The domain in which a program of a unit ran.
    #[must_use]
    pub fn domain(&self, unit: &str, program: &Path) -> Option<&str> {
        self.programs.get(&(unit.to_owned(), program.to_owned())).map(String::as_str)
    }

    /// The units of which something was seen.
    pub fn units(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(|(unit, _)| unit.as_str())
    }

    /// Forgets a program of a unit.
    pub fn forget(&mut self, unit: &str, program: &Path) {
        self.programs.remove(&(unit.to_owned(), program.to_owned()));
    }

    /// Whether another policy was in force last, and that was in another run of the machine.
    #[must_use]
    pub fn was_another(&self, policy: &InForce) -> bool {
        self.policy.as_ref().is_some_and(|last| last.digest != policy.digest && last.boot != policy.boot)
    }

    /// Remembers the policy that is in force; whether that is new.
    pub fn set_policy(&mut self, policy: InForce) -> bool {
        let is_new = self.policy.as_ref() != Some(&policy);
        self.policy = Some(policy);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_over_a_start_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let mut seen = Seen::read(folder.path()).unwrap();
        let policy = |digest: &str, boot: &str| InForce { digest: digest.to_owned(), boot: boot.to_owned() };
        assert!(!seen.was_another(&policy("1", "a")));
        assert!(seen.set_policy(policy("1", "a")) && !seen.set_policy(policy("1", "a")));
        let program = Path::new("/srv/a program");
        assert!(seen.see("web.service", program, "web_t"));
        assert!(!seen.see("web.service", program, "web_t"));
        assert!(!seen.see("web service", program, "web_t"));
        Seen::write(&seen.text(), folder.path()).unwrap();
        let again = Seen::read(folder.path()).unwrap();
        assert_eq!(again, seen);
        assert_eq!(again.domain("web.service", program), Some("web_t"));
        assert_eq!(again.domain("other.service", program), None);
        assert!(again.was_another(&policy("2", "b")));
        assert!(!again.was_another(&policy("2", "a")));
        assert!(!again.was_another(&policy("1", "b")));
    }

    #[test]
    fn does_without_lines_that_say_nothing() {
        let seen = Seen::parse("program a.service\nnonsense\npolicy 1\npolicy 1 a\n\nprogram a.service a_t /a\n");
        assert_eq!(seen.text(), "policy 1 a\nprogram a.service a_t /a\n");
    }
}
