//! TOMOYO: learns what one run of the workloads does, then enforces that.
//!
//! TOMOYO becomes active when the program of `TOMOYO_trigger=` is first executed. The kernel then runs `TOMOYO_loader=`,
//! which should load the policy, and considers the policy loaded (tomoyo_load_policy, security/tomoyo/load_policy.c). Until
//! then any process may write policy. So the policy is written here, and loader and trigger are one program that does
//! nothing.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use super::securityfs::{ROOT, require};
use crate::{Error, error::Context, program};

mod learnt;

/// The program that the kernel command line must name as `TOMOYO_loader=` and `TOMOYO_trigger=`.
const TRIGGER: &str = "/tollgate-tomoyo";

/// The words that a guest's kernel command line needs for [`Confinement::TomoyoLearnt`](super::Confinement::TomoyoLearnt).
pub fn command_line() -> String {
    format!("TOMOYO_loader={TRIGGER} TOMOYO_trigger={TRIGGER}")
}

/// The profile of all processes; all domains descend from the kernel's and inherit it.
const PROFILE: u8 = 1;

/// The most rules that a domain may learn: twice those of all workloads. The kernel's default is 2048.
const MAX_RULES: u32 = 16384;

/// TOMOYO, learning or enforcing. Dropping it switches the profile off.
#[derive(Debug)]
pub(super) struct Learning {
    /// Opened at the beginning, because the learnt policy may not allow opening it.
    profile: File,
    domains: File,
}

impl Learning {
    /// Writes the policy, activates TOMOYO and starts learning.
    pub(super) fn begin() -> Result<Learning, Error> {
        require("tomoyo")?;
        demand_trigger(&fs::read_to_string("/proc/cmdline").context("read /proc/cmdline")?)?;
        let mut learning = Learning { profile: open("profile")?, domains: open("domain_policy")? };
        // The version of the profile syntax, the same from Linux 3.19 on; tomoyo_check_profile panics on another.
        put(&mut learning.profile, "profile", "PROFILE_VERSION=20150505\n")?;
        put(&mut learning.profile, "profile", "0-CONFIG={ mode=disabled }\n")?;
        let preference = format!("{PROFILE}-PREFERENCE={{ max_audit_log=0 max_learning_entry={MAX_RULES} }}\n");
        put(&mut learning.profile, "profile", &preference)?;
        learning.set_mode("learning")?;
        // This process stays in the kernel's domain: it was started before the policy was loaded.
        put(&mut open("manager")?, "manager", "<kernel>\n")?;
        let start = format!("<kernel>\nuse_profile {PROFILE}\n");
        put(&mut learning.domains, "domain_policy", &start)?;
        pull_trigger()?;
        Ok(learning)
    }

    /// Replaces the learnt rules by rules that allow other numbers too, and enforces them.
    pub(super) fn enforce(&mut self) -> Result<String, Error> {
        let mut policy = String::new();
        self.domains.rewind().context("rewind tomoyo's domain_policy")?;
        self.domains.read_to_string(&mut policy).context("read tomoyo's domain_policy")?;
        let learnt = learnt::generalise(&policy);
        if !learnt.overflowed.is_empty() {
            return Err(Error::Unavailable(format!(
                "tomoyo: more than {MAX_RULES} rules to learn in {}; run fewer workloads per job",
                learnt.overflowed.join(", ")
            )));
        }
        for change in &learnt.changes {
            put(&mut self.domains, "domain_policy", change)?;
        }
        self.set_mode("enforcing")?;
        Ok(format!("tomoyo: enforcing {} rules in {} domains", learnt.rules, learnt.domains))
    }

    fn set_mode(&mut self, mode: &str) -> Result<(), Error> {
        let line = format!("{PROFILE}-CONFIG={{ mode={mode} grant_log=no reject_log=no }}\n");
        put(&mut self.profile, "profile", &line)
    }
}

impl Drop for Learning {
    fn drop(&mut self) {
        // An error cannot be reported in a drop; a profile that stays on denies later steps, which report that.
        let _ = self.set_mode("disabled");
    }
}

/// Checks that the command line names our trigger; another one cannot be used.
fn demand_trigger(command_line: &str) -> Result<(), Error> {
    let wanted = self::command_line();
    let given: Vec<&str> = command_line.split_whitespace().collect();
    if wanted.split(' ').all(|word| given.contains(&word)) {
        return Ok(());
    }
    Err(Error::Unavailable(format!("tomoyo is not set up to learn; boot with {wanted}")))
}

/// Creates the program that does nothing, and executes it; the kernel then runs it as the loader, too.
fn pull_trigger() -> Result<(), Error> {
    fs::write(TRIGGER, program::exit_0()).context(format!("write {TRIGGER}"))?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(Path::new(TRIGGER), executable).context(format!("chmod {TRIGGER}"))?;
    let status = Command::new(TRIGGER).status().context(format!("run {TRIGGER}"))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Unavailable(format!("tomoyo: {TRIGGER} ended with {status}")))
}

fn open(name: &str) -> Result<File, Error> {
    let path = format!("{ROOT}/tomoyo/{name}");
    OpenOptions::new().read(true).write(true).open(&path).context(format!("open {path}"))
}

/// Writes lines that take effect together.
fn put(file: &mut File, name: &str, lines: &str) -> Result<(), Error> {
    file.write_all(lines.as_bytes()).context(format!("write {:?} to tomoyo's {name}", lines.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_a_command_line_with_the_trigger() {
        assert!(demand_trigger(&format!("quiet {} panic=-1\n", command_line())).is_ok());
    }

    #[test]
    fn rejects_a_command_line_without_the_trigger_and_names_it() {
        for other in ["quiet TOMOYO_trigger=/sbin/init", "TOMOYO_trigger=/tollgate-tomoyo"] {
            let error = demand_trigger(other).unwrap_err().to_string();
            assert!(error.contains("boot with TOMOYO_loader=/tollgate-tomoyo"), "{error}");
        }
    }
}
