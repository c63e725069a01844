//! The machine that figures of the wall clock are of.

use std::{arch::x86_64::__cpuid, fs, thread};

use serde::Serialize;

/// The machine that this process runs on: without it, no time by the wall clock says anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Its processor.
    pub cpu: String,
    /// How many processors this process may use.
    pub cores: u32,
    /// The release of its kernel.
    pub host: String,
    /// The hypervisor that it runs on, or `none`.
    pub hypervisor: String,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn this() -> Self {
        Self {
            cpu: processor(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cores: thread::available_parallelism().map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
            host: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
            hypervisor: hypervisor(),
        }
    }

    /// It in a few words.
    #[must_use]
    pub fn in_words(&self) -> String {
        in_words(&self.cpu, self.cores, &self.host, Some(&self.hypervisor))
    }

    /// Whether QEMU emulates its processor, so that its wall clock measures QEMU.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        self.hypervisor == EMULATION
    }
}

/// A machine in a few words: its processors, its kernel, and the hypervisor that it runs on, if that is known.
pub(crate) fn in_words(cpu: &str, cores: u32, host: &str, hypervisor: Option<&str>) -> String {
    let on = match hypervisor {
        None => String::new(),
        Some(NO_HYPERVISOR) => ", no hypervisor".to_owned(),
        Some(name) => format!(", on {name}"),
    };
    let processors = if cores == 1 { "processor" } else { "processors" };
    format!("{cpu}, {cores} {processors}, Linux {host}{on}")
}

const NO_HYPERVISOR: &str = "none";
/// QEMU without an accelerator.
const EMULATION: &str = "QEMU's emulation";
/// Hypervisors, by what CPUID returns.
const HYPERVISORS: [(&str, &str); 7] = [
    ("KVMKVMKVM", "KVM"),
    ("TCGTCGTCGTCG", EMULATION),
    ("Microsoft Hv", "Hyper-V"),
    ("VMwareVMware", "VMware"),
    ("XenVMMXenVMM", "Xen"),
    ("VBoxVBoxVBox", "VirtualBox"),
    ("bhyve bhyve ", "bhyve"),
];

/// What the processor says of a hypervisor.
fn hypervisor() -> String {
    const PRESENT: u32 = 1 << 31;
    if __cpuid(1).ecx & PRESENT == 0 {
        return NO_HYPERVISOR.into();
    }
    let found = __cpuid(0x4000_0000);
    named([found.ebx, found.ecx, found.edx])
}

/// The name of the hypervisor with this signature.
fn named(signature: [u32; 3]) -> String {
    let bytes: Vec<u8> = signature.iter().flat_map(|word| word.to_le_bytes()).collect();
    let text = String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned();
    match HYPERVISORS.iter().find(|(own, _)| *own == text) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("unknown ({})", text.escape_default()),
    }
}

/// The first `model name` of /proc/cpuinfo.
fn processor(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_processors_name() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: A 9 @ 1GHz\nmodel name\t: B\n"), "A 9 @ 1GHz");
        assert_eq!(processor(""), "");
    }

    #[test]
    fn names_hypervisors_by_their_signatures() {
        let signature = |text: &[u8; 12]| {
            let word = |at: usize| u32::from_le_bytes(text[at..at + 4].try_into().unwrap());
            named([word(0), word(4), word(8)])
        };
        assert_eq!(signature(b"KVMKVMKVM\0\0\0"), "KVM");
        assert_eq!(signature(b"TCGTCGTCGTCG"), EMULATION);
        assert_eq!(signature(b"bhyve bhyve "), "bhyve");
        assert_eq!(signature(b"Another\x01One\0"), "unknown (Another\\u{1}One)");
    }

    #[test]
    fn says_on_what_a_machine_runs_if_that_is_known() {
        assert_eq!(in_words("A 9", 1, "6.1.0", Some("none")), "A 9, 1 processor, Linux 6.1.0, no hypervisor");
        assert_eq!(in_words("A 9", 2, "6.1.0", Some("KVM")), "A 9, 2 processors, Linux 6.1.0, on KVM");
        assert_eq!(in_words("A 9", 2, "6.1.0", None), "A 9, 2 processors, Linux 6.1.0");
    }
}
