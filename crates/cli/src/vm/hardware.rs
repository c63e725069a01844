//! Options of a machine that cannot change once it has booted.

use anyhow::bail;
use clap::{Args, ValueEnum};
use tollgate_host::Cache;
use tollgate_vm::{Accelerator, Clock, Kernel, Machine, accelerator, guest};

use crate::interrupt;

#[derive(Debug, Args)]
pub(super) struct Hardware {
    /// Series (6.1), release, or path of a bzImage
    #[arg(long, default_value = "6.1")]
    pub(super) kernel: String,
    /// Security modules, as in the kernel's lsm= (lockdown and capability are always present)
    #[arg(long, value_name = "LIST")]
    lsm: Option<String>,
    /// Wall clock only: use kvm or emulation instead of trying KVM
    #[arg(long, value_enum)]
    accelerator: Option<AcceleratorName>,
    /// Further words for the kernel's command line
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    append: Vec<String>,
    /// The guest's memory in MiB
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(64..))]
    memory: u32,
    /// Virtual processors (wall clock only)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcceleratorName {
    Kvm,
    Emulation,
}

impl Hardware {
    /// Makes a machine without disks. Returns it with the reason for its accelerator.
    pub(super) fn machine(&self, cache: &Cache, kernel: &Kernel, clock: Clock) -> anyhow::Result<(Machine, String)> {
        let (accelerator, reason) = self.choose_accelerator(cache, kernel, clock)?;
        // Checked before anything is prepared.
        guest::emulator_version()?;
        let machine = Machine {
            kernel: kernel.image.clone(),
            clock,
            accelerator,
            lsm: self.lsm.clone(),
            append: self.append.clone(),
            memory_mib: self.memory,
            cpus: self.cpus,
            disk: None,
            volumes: Vec::new(),
            wire: None,
        };
        Ok((machine, reason))
    }

    fn choose_accelerator(
        &self,
        cache: &Cache,
        kernel: &Kernel,
        clock: Clock,
    ) -> anyhow::Result<(Accelerator, String)> {
        Ok(match (clock, self.accelerator) {
            (Clock::Instructions, Some(AcceleratorName::Kvm)) => {
                bail!("KVM cannot count instructions: use --clock wall, or leave --accelerator out")
            }
            (Clock::Instructions, _) => (Accelerator::Emulation, "the instruction clock needs it".into()),
            (Clock::Wall, Some(AcceleratorName::Kvm)) => (Accelerator::Kvm, "as requested".into()),
            (Clock::Wall, Some(AcceleratorName::Emulation)) => (Accelerator::Emulation, "as requested".into()),
            (Clock::Wall, None) => {
                let verdict = accelerator::choose(cache, &kernel.image, interrupt::flag()?)?;
                (verdict.accelerator, verdict.reason)
            }
        })
    }
}
