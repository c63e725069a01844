//! AppArmor: loads a profile with the distribution's parser, and enters it.

use std::{path::Path, process::Command};

use super::securityfs::{ROOT, read, require, write};
use crate::{Error, error::Context};

/// Loads the profile and, if `confined`, moves the calling thread into it.
pub(super) fn load(parser: &Path, profile: &Path, confined: bool) -> Result<String, Error> {
    require("apparmor")?;
    // -N prints names and loads nothing; -r replaces a profile of the same name; -K keeps away from caches.
    let names = run(parser, &["-N"], profile)?;
    let Some(name) = names.lines().next() else {
        return Err(Error::Unavailable(format!("{} defines no profile", profile.display())));
    };
    run(parser, &["-r", "-K"], profile)?;
    let loaded = read(&format!("{ROOT}/apparmor/profiles"))?;
    let Some(state) = loaded.lines().find(|line| is_profile(line, name)) else {
        return Err(Error::Unavailable(format!(
            "apparmor does not list the profile {name} after {} loaded it",
            parser.display()
        )));
    };
    if !confined {
        return Ok(format!("apparmor: {state} loaded, this process unconfined"));
    }
    enter(name).map(|label| format!("apparmor: confined by {label}"))
}

/// Whether a line of `profiles`, such as `NAME (enforce)`, is of that profile.
fn is_profile(line: &str, name: &str) -> bool {
    line.rsplit_once(" (").is_some_and(|(listed, _)| listed == name)
}

/// Changes the calling thread's profile for good, and reads back what the kernel made of it.
fn enter(name: &str) -> Result<String, Error> {
    // Where other modules have attributes too, AppArmor has a folder of its own (since Linux 5.8).
    let own = "/proc/thread-self/attr/apparmor/current";
    let attribute = if Path::new(own).exists() { own } else { "/proc/thread-self/attr/current" };
    write(attribute, format!("changeprofile {name}").as_bytes())?;
    let label = read(attribute)?;
    if label == format!("{name} (enforce)") {
        return Ok(label);
    }
    Err(Error::Unavailable(format!(
        "apparmor: this process is {label:?} after entering {name}; the profile must be in enforce mode"
    )))
}

fn run(parser: &Path, arguments: &[&str], profile: &Path) -> Result<String, Error> {
    let shown = parser.display();
    let output = Command::new(parser)
        .args(arguments)
        .arg(profile)
        .output()
        .context(format!("run {shown} (with its libraries beside it)"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Unavailable(format!(
        "{shown} {} {}: {}: {}",
        arguments.join(" "),
        profile.display(),
        output.status,
        said.trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_profile_by_its_whole_name() {
        assert!(is_profile("bench (enforce)", "bench"));
        assert!(is_profile("bench (x) (complain)", "bench (x)"));
        assert!(!is_profile("bench2 (enforce)", "bench"));
        assert!(!is_profile("bench", "bench"));
    }

    #[test]
    fn reports_what_the_parser_said_when_it_fails() {
        let error = run(Path::new("/bin/ls"), &["-d"], Path::new("/no such")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/bin/ls -d /no such"), "{text}");
        assert!(text.contains("cannot access"), "{text}");
    }
}
