//! Finds out whether KVM works by booting a guest on it, because the device node alone proves nothing.

use std::{fs, path::Path, sync::atomic::AtomicBool, time::Duration};

use serde::{Deserialize, Serialize};

use tollgate_host::{Cache, Error as HostError, process::Limits};

use crate::{
    Accelerator, Clock, Error, Image, Machine,
    error::Context,
    guest::{self, GuestCommand},
};

/// How long a KVM guest may take to boot; a working one takes a second or two.
const BOOT_TIMEOUT: Duration = Duration::from_secs(10);

/// The accelerator to use on this host, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The accelerator for wall-clock guests.
    pub accelerator: Accelerator,
    /// The reason, for people.
    pub reason: String,
    /// The host's boot and the emulator for which it was found; it is tried once per boot.
    found_under: String,
}

/// Tries a guest on KVM, or remembers the result of an earlier trial in this boot of the host.
pub fn choose(cache: &Cache, kernel: &Path, interrupted: &AtomicBool) -> Result<Verdict, Error> {
    let found_under = format!(
        "{} {}",
        fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim(),
        guest::emulator_version()?
    );
    let record = cache.path("accelerator.json");
    let known = fs::read(&record).ok().and_then(|text| serde_json::from_slice::<Verdict>(&text).ok());
    if let Some(verdict) = known.filter(|verdict| verdict.found_under == found_under) {
        return Ok(verdict);
    }
    let (accelerator, reason) = trial(kernel, interrupted)?;
    let reason = match accelerator {
        Accelerator::Kvm => reason,
        // A loaded host or a missing permission may have been the cause.
        Accelerator::Emulation => format!("{reason} (delete {} to try again)", record.display()),
    };
    let verdict = Verdict { accelerator, reason, found_under };
    let text = serde_json::to_vec_pretty(&verdict).map_err(std::io::Error::from).context("write the verdict")?;
    fs::write(&record, text).context(format!("write {}", record.display()))?;
    Ok(verdict)
}

fn trial(kernel: &Path, interrupted: &AtomicBool) -> Result<(Accelerator, String), Error> {
    if !Path::new("/dev/kvm").exists() {
        return Ok((Accelerator::Emulation, "KVM was not tried: there is no /dev/kvm".into()));
    }
    let machine = Machine {
        kernel: kernel.into(),
        clock: Clock::Wall,
        accelerator: Accelerator::Kvm,
        lsm: None,
        append: Vec::new(),
        memory_mib: 512,
        cpus: 1,
        disk: None,
        volumes: Vec::new(),
        wire: None,
    };
    let limits = Limits { timeout: BOOT_TIMEOUT, interrupted };
    match guest::run(&machine, &Image::with_agent()?, &GuestCommand::default(), limits, &mut |_, _| {})
        .map_err(Error::from)
    {
        Ok(_) => Ok((Accelerator::Kvm, "a trial guest came up on it".into())),
        Err(e @ Error::Host(HostError::Interrupted)) => Err(e),
        Err(e @ (Error::QemuAbsent { .. } | Error::Host(HostError::Io { .. }))) => Err(e),
        Err(e) => Ok((Accelerator::Emulation, format!("KVM was tried and does not work here: {}", symptom(&e)))),
    }
}

/// What a failed trial guest did, in a few words.
fn symptom(error: &Error) -> String {
    match error {
        Error::Timeout { .. } => format!("a trial guest did not come up within {} s", BOOT_TIMEOUT.as_secs()),
        Error::QemuDied { status, detail, .. } => {
            let last = detail.lines().last().unwrap_or_default();
            format!("QEMU ended with {status} {last}").trim_end().to_string()
        }
        other => other.to_string().lines().next().unwrap_or_default().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_a_hanging_guest_from_an_aborting_emulator() {
        let hang = Error::Timeout { seconds: 10, console: "long\ntext".into() };
        assert_eq!(symptom(&hang), "a trial guest did not come up within 10 s");
        let abort = Error::QemuDied {
            status: "signal: 6".into(),
            detail: "warning: x\nerror: failed to set MSR 0x10a to 0x0".into(),
            console: String::new(),
        };
        assert_eq!(symptom(&abort), "QEMU ended with signal: 6 error: failed to set MSR 0x10a to 0x0");
    }
}
