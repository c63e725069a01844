//! The virtual machine as QEMU's arguments and the kernel's command line: pure functions, one concern each.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Wire, value};

/// The clock of the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// One nanosecond of guest time is one guest instruction: exact, the same on every run, without the effects of
    /// caches.
    Instructions,
    /// The host's time.
    Wall,
}

impl Clock {
    /// The name in study files, options and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Wall => "wall",
        }
    }
}

/// What executes the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// The host's processor, through KVM.
    Kvm,
    /// QEMU's translator, TCG.
    Emulation,
}

impl Accelerator {
    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Emulation => "emulation",
        }
    }
}

/// A machine to boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's bzImage.
    pub kernel: PathBuf,
    /// The guest's clock. `Instructions` implies emulation.
    pub clock: Clock,
    /// The accelerator on the wall clock.
    pub accelerator: Accelerator,
    /// The value of `lsm=`; `None` leaves the kernel's own default.
    pub lsm: Option<String>,
    /// Further words for the kernel's command line, last.
    pub append: Vec<String>,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Virtual processors on the wall clock; the instruction clock has one.
    pub cpus: u32,
    /// The first disk, `/dev/vda`.
    pub disk: Option<Disk>,
    /// Raw images of further disks, in this order after the first; what the guest writes to them is kept.
    pub volumes: Vec<PathBuf>,
    /// Its end of a wire to another guest. Without one it has no network card.
    pub wire: Option<Wire>,
}

/// A disk on the virtio bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Its raw image.
    pub image: PathBuf,
    /// Whether the guest's writes are kept. Otherwise they are lost when the guest ends.
    pub kept: bool,
}

/// The connections between the machine and the host.
#[derive(Debug, Clone)]
pub struct Wiring {
    /// The file with the initramfs.
    pub initrd: PathBuf,
    /// A listening Unix socket: the guest's second serial port, where the agent speaks.
    pub agent: PathBuf,
    /// A listening Unix socket: QEMU's monitor; `None`: nobody speaks to it.
    pub(crate) monitor: Option<PathBuf>,
    /// What a machine that is saved, or was saved, needs besides.
    pub(crate) saving: Option<Saving>,
}

/// How a machine is saved, or goes on from what was saved.
#[derive(Debug, Clone)]
pub(crate) struct Saving {
    /// The file that is the guest's memory.
    pub(crate) memory: PathBuf,
    /// The image of the first disk, by which files are sent to a machine that goes on.
    pub(crate) parcel: PathBuf,
    /// True if a saved machine goes on: its writes to memory are private. False if it boots: its writes stay in the
    /// file.
    pub(crate) goes_on: bool,
}

impl Wiring {
    /// The wiring of a machine that boots, runs its command and ends.
    #[must_use]
    pub fn boot(initrd: PathBuf, agent: PathBuf) -> Self {
        Self { initrd, agent, monitor: None, saving: None }
    }
}

impl Machine {
    /// The accelerator that this machine really runs on.
    #[must_use]
    pub fn runs_on(&self) -> Accelerator {
        match self.clock {
            Clock::Instructions => Accelerator::Emulation,
            Clock::Wall => self.accelerator,
        }
    }

    /// All arguments of `qemu-system-x86_64`.
    #[must_use]
    pub fn arguments(&self, wiring: &Wiring) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        let board = if wiring.saving.is_some() { "pc,memory-backend=memory" } else { "pc" };
        all.extend(strings(&["-M", board, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]));
        all.extend(self.processor());
        all.extend(strings(&["-m", &self.memory_mib.to_string()]));
        all.extend(time(self.clock));
        all.extend(serial(wiring));
        all.extend(wiring.monitor.iter().flat_map(|socket| monitor(socket)));
        all.extend(wiring.saving.iter().flat_map(|saving| self.saving(saving)));
        all.extend(self.disk.as_ref().map(drive).into_iter().flatten());
        let volumes = self.volumes.iter().map(|image| Disk { image: image.clone(), kept: true });
        all.extend(volumes.flat_map(|volume| drive(&volume)));
        all.extend(self.wire.iter().flat_map(Wire::arguments));
        all.extend(["-kernel".into(), self.kernel.clone().into_os_string()]);
        if wiring.saving.as_ref().is_none_or(|saving| !saving.goes_on) {
            all.extend(["-initrd".into(), wiring.initrd.clone().into_os_string()]);
        }
        all.extend(["-append".into(), self.command_line().into()]);
        all
    }

    /// The kernel's command line.
    #[must_use]
    pub fn command_line(&self) -> String {
        let mut words = vec!["console=ttyS0", "quiet", "loglevel=4", "panic=-1", "oops=panic"];
        // Expedited grace periods: attaching many BPF programs is slow under emulation on 6.12 and later without.
        words.push("rcupdate.rcu_expedited=1");
        if self.clock == Clock::Instructions {
            // Nothing may differ between two boots: addresses, seeds; and DAMON_STAT's sampling thread (6.17 and
            // later) would run beside every workload for ever.
            words.extend(["nokaslr", "norandmaps", "random.trust_cpu=off", "damon_stat.enabled=0"]);
        }
        if self.clock == Clock::Wall && self.accelerator == Accelerator::Emulation {
            // The kernel panics when ten ticks do not come in the time that it waits for them (timer_irq_works): on a
            // loaded machine the emulator may stand still for longer.
            words.push("no_timer_check");
        }
        let lsm = self.lsm.as_ref().map(|list| format!("lsm={list}"));
        words.extend(lsm.as_deref());
        words.extend(self.append.iter().map(String::as_str));
        words.join(" ")
    }

    fn saving(&self, saving: &Saving) -> Vec<OsString> {
        let share = if saving.goes_on { "off" } else { "on" };
        let (memory, size) = (value::of(&saving.memory), self.memory_mib);
        let mut all = strings(&[
            "-object",
            &format!("memory-backend-file,id=memory,size={size}M,share={share},mem-path={memory}"),
            "-drive",
            &format!("if=virtio,format=raw,readonly=on,file={}", value::of(&saving.parcel)),
        ]);
        if saving.goes_on {
            all.extend(strings(&["-incoming", "defer"]));
        }
        all
    }

    fn processor(&self) -> Vec<OsString> {
        match (self.clock, self.accelerator) {
            // -erms,-fsrm: QEMU does a `rep movsb` byte by byte, and counts each as an instruction; without them the
            // kernel copies by eight. -rdrand,-rdseed: QEMU would answer with the host's randomness.
            (Clock::Instructions, _) => strings(&[
                "-accel",
                "tcg,thread=single",
                "-cpu",
                "max,-rdrand,-rdseed,-erms,-fsrm",
                "-smp",
                "1",
                "-seed",
                "1",
            ]),
            (Clock::Wall, Accelerator::Kvm) => {
                strings(&["-accel", "kvm", "-cpu", "host", "-smp", &self.cpus.to_string()])
            }
            (Clock::Wall, Accelerator::Emulation) => {
                strings(&["-accel", "tcg", "-cpu", "max,-erms,-fsrm", "-smp", &self.cpus.to_string()])
            }
        }
    }
}

fn time(clock: Clock) -> Vec<OsString> {
    match clock {
        Clock::Instructions => strings(&["-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01T00:00:00,clock=vm"]),
        Clock::Wall => strings(&["-rtc", "base=utc,clock=host"]),
    }
}

fn serial(wiring: &Wiring) -> Vec<OsString> {
    let mut agent = OsString::from("socket,id=agent,server=off,path=");
    agent.push(value::of(&wiring.agent));
    let mut all = strings(&["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console", "-chardev"]);
    all.push(agent);
    all.extend(strings(&["-serial", "chardev:agent"]));
    all
}

fn monitor(socket: &Path) -> Vec<OsString> {
    let chardev = format!("socket,id=monitor,server=off,path={}", value::of(socket));
    strings(&["-chardev", &chardev, "-mon", "chardev=monitor,mode=control"])
}

fn drive(disk: &Disk) -> [OsString; 2] {
    let snapshot = if disk.kept { "off" } else { "on" };
    ["-drive".into(), format!("if=virtio,format=raw,snapshot={snapshot},file={}", value::of(&disk.image)).into()]
}

fn strings(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(clock: Clock, accelerator: Accelerator) -> Machine {
        Machine {
            kernel: "/k".into(),
            clock,
            accelerator,
            lsm: Some("bpf".into()),
            append: vec!["tollgate.pad=xx".into()],
            memory_mib: 512,
            cpus: 2,
            disk: None,
            volumes: Vec::new(),
            wire: None,
        }
    }

    fn wiring() -> Wiring {
        Wiring { initrd: "/i".into(), agent: "/s,1".into(), monitor: None, saving: None }
    }

    fn text(machine: &Machine) -> String {
        machine.arguments(&wiring()).iter().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn counts_instructions_on_one_emulated_processor() {
        let machine = machine(Clock::Instructions, Accelerator::Kvm);
        let arguments = text(&machine);
        assert!(arguments.contains("-icount shift=0,sleep=off"));
        assert!(arguments.contains("tcg,thread=single -cpu max,-rdrand,-rdseed,-erms,-fsrm -smp 1"));
        assert_eq!(machine.runs_on(), Accelerator::Emulation);
    }

    #[test]
    fn spares_the_emulator_strings_of_bytes() {
        let arguments = text(&machine(Clock::Wall, Accelerator::Emulation));
        assert!(arguments.contains("-accel tcg -cpu max,-erms,-fsrm -smp 2"), "{arguments}");
    }

    #[test]
    fn uses_the_host_processor_under_kvm() {
        let arguments = text(&machine(Clock::Wall, Accelerator::Kvm));
        assert!(arguments.contains("-accel kvm -cpu host -smp 2"));
        assert!(!arguments.contains("icount"));
    }

    #[test]
    fn doubles_commas_in_the_socket_path() {
        assert!(text(&machine(Clock::Wall, Accelerator::Kvm)).contains("path=/s,,1"));
    }

    #[test]
    fn forgets_what_is_written_to_a_disk_unless_it_is_to_be_kept() {
        let with = |kept| {
            let disk = Some(Disk { image: "/d,1".into(), kept });
            text(&Machine { disk, ..machine(Clock::Wall, Accelerator::Kvm) })
        };
        assert!(with(false).contains("-drive if=virtio,format=raw,snapshot=on,file=/d,,1"));
        assert!(with(true).contains("snapshot=off"));
        assert!(!text(&machine(Clock::Wall, Accelerator::Kvm)).contains("-drive"));
    }

    #[test]
    fn keeps_what_is_written_to_further_disks_in_their_order() {
        let volumes = vec!["/a".into(), "/b".into()];
        let text = text(&Machine { volumes, ..machine(Clock::Wall, Accelerator::Kvm) });
        let drive = |name: &str| format!("-drive if=virtio,format=raw,snapshot=off,file={name}");
        assert!(text.contains(&format!("{} {}", drive("/a"), drive("/b"))), "{text}");
    }

    #[test]
    fn has_a_network_card_only_at_a_wire() {
        let plain = machine(Clock::Wall, Accelerator::Emulation);
        let wire = Some("/a:/b".parse().unwrap());
        assert!(!text(&plain).contains("-netdev") && !text(&plain).contains("-device"));
        assert!(text(&Machine { wire, ..plain }).contains(" -netdev dgram,id=wire,"));
    }

    #[test]
    fn shares_the_memory_of_a_saved_machine_between_those_that_go_on() {
        let with = |goes_on| {
            let saving = Saving { memory: "/m,1/memory".into(), parcel: "/parcel".into(), goes_on };
            let wiring = Wiring { saving: Some(saving), ..wiring() };
            let arguments = machine(Clock::Wall, Accelerator::Emulation).arguments(&wiring);
            arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        let saved = "memory-backend-file,id=memory,size=512M,share=on,mem-path=/m,,1/memory";
        assert!(with(false).contains(saved) && !with(false).contains("-incoming"));
        assert!(with(true).contains(&saved.replace("share=on", "share=off")) && with(true).contains("-incoming defer"));
        assert!(with(true).contains("-M pc,memory-backend=memory -nodefaults"));
    }

    #[test]
    fn has_a_monitor_only_if_somebody_speaks_to_it() {
        let machine = machine(Clock::Instructions, Accelerator::Emulation);
        assert!(!text(&machine).contains("-mon"));
        let watched = Wiring { monitor: Some("/m,1".into()), ..wiring() };
        let words: Vec<_> = machine.arguments(&watched).iter().map(|a| a.to_string_lossy().into_owned()).collect();
        assert!(words.join(" ").contains("id=monitor,server=off,path=/m,,1 -mon chardev=monitor,mode=control"));
    }

    #[test]
    fn names_modules_and_appended_words_on_the_command_line() {
        let line = machine(Clock::Instructions, Accelerator::Emulation).command_line();
        assert!(line.contains(" lsm=bpf "), "{line}");
        assert!(line.ends_with(" tollgate.pad=xx"), "{line}");
        assert!(line.contains("nokaslr"));
    }

    #[test]
    fn lets_a_guest_boot_whose_ticks_come_late() {
        let line = |clock, accelerator| machine(clock, accelerator).command_line();
        assert!(line(Clock::Wall, Accelerator::Emulation).contains(" no_timer_check "));
        assert!(!line(Clock::Wall, Accelerator::Kvm).contains("no_timer_check"));
        // Where time is counted in instructions the emulator cannot be late; and every word moves the guest's memory.
        assert!(!line(Clock::Instructions, Accelerator::Emulation).contains("no_timer_check"));
    }

    #[test]
    fn leaves_the_kernels_own_modules_when_none_are_named() {
        let machine = Machine { lsm: None, ..machine(Clock::Wall, Accelerator::Emulation) };
        assert!(!machine.command_line().contains("lsm="));
    }
}
