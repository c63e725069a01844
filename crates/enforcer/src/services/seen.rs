//! What was seen confined, and the policy that was in force. This survives restarts of the machine, so that a loss is
//! noticed.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Name of the file in the directory of notes.
const NAME: &str = "confined";
/// How many programs are remembered.
const MAX_PROGRAMS: usize = 4096;

/// A policy that is or was in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// SHA-256 of the built policy, in hexadecimal digits.
    pub digest: String,
    /// The kernel's identifier of the machine's run (`boot_id`).
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
    /// Reads the file in a directory. Without a file, nothing was seen.
    pub fn read(folder: &Path) -> io::Result<Self> {
        match fs::read_to_string(folder.join(NAME)) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            other => Ok(Self::parse(&other?)),
        }
    }

    /// Reads lines `policy SHA-256 BOOT` and `program UNIT TYPE PATH`. Other lines are ignored.
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

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let policy = self.policy.iter().map(|InForce { digest, boot }| format!("policy {digest} {boot}\n"));
        let programs = self.programs.iter();
        let programs = programs.map(|((unit, path), domain)| format!("program {unit} {domain} {}\n", path.display()));
        policy.chain(programs).collect()
    }

    /// Writes the text to the file in a directory.
    pub fn write(text: &str, folder: &Path) -> io::Result<()> {
        let beside = folder.join("confined.new");
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, folder.join(NAME))
    }

    /// Remembers that a program of a unit runs in a domain. Returns whether that is new.
    pub fn see(&mut self, unit: &str, program: &Path, domain: &str) -> bool {
        let tellable = !unit.contains([' ', '\n']) && program.to_str().is_some_and(|path| !path.contains('\n'));
        let key = (unit.to_owned(), program.to_owned());
        if !tellable
            || self.programs.get(&key).is_some_and(|known| known == domain)
            || self.programs.len() >= MAX_PROGRAMS
        {
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

    /// The units in which something was seen.
    pub fn units(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(|(unit, _)| unit.as_str())
    }

    /// Forgets a program of a unit.
    pub fn forget(&mut self, unit: &str, program: &Path) {
        self.programs.remove(&(unit.to_owned(), program.to_owned()));
    }

    /// Whether another policy was in force last, and in another run of the machine.
    #[must_use]
    pub fn was_another(&self, policy: &InForce) -> bool {
        self.policy.as_ref().is_some_and(|last| last.digest != policy.digest && last.boot != policy.boot)
    }

    /// Remembers the policy that is in force. Returns whether that is new.
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
