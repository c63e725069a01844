//! Machines that were booted once and saved, from which guests go on: a boot costs several times what most of them do.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
};

use crate::program::{
    BUILT, Scratch,
    guests::{KNOWN, take},
    word,
};

/// Seconds that a boot may take while other guests run.
const BOOT_TIMEOUT: u32 = 900;

/// The parts of a machine that cannot change after it has booted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hardware {
    pub(crate) kernel: String,
    pub(crate) lsm: String,
    pub(crate) processors: u32,
}

impl Hardware {
    /// Options of `tollgate vm run` and `tollgate vm save`.
    pub(super) fn words(&self) -> Vec<String> {
        let words = ["--kernel", &self.kernel, "--lsm", &self.lsm, "--cpus", &self.processors.to_string()];
        words.map(str::to_owned).to_vec()
    }

    /// The folder of the saved machine. It is saved now if no earlier test needed it.
    pub(super) fn saved(&self) -> PathBuf {
        static SAVED: LazyLock<Mutex<BTreeMap<Hardware, Arc<OnceLock<PathBuf>>>>> = LazyLock::new(Mutex::default);
        let cell = SAVED.lock().unwrap_or_else(PoisonError::into_inner).entry(self.clone()).or_default().clone();
        cell.get_or_init(|| self.save()).clone()
    }

    /// Saves a machine, unless another run of the test program has saved it with the same program.
    fn save(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines");
        fs::create_dir_all(&folder).expect("make a folder for machines");
        let name = format!("{}-{}-{}", self.kernel, self.lsm, self.processors);
        let lock = File::create(folder.join(format!("{name}.lock"))).expect("make a lock");
        lock.lock().expect("wait for another run of the test program");
        let (machine, built, now) = (folder.join(&name), folder.join(format!("{name}.built")), built());
        if !machine.exists() || fs::read_to_string(&built).ok().as_ref() != Some(&now) {
            let _ = fs::remove_dir_all(&machine);
            self.boot_and_save(&machine);
            fs::write(built, now).expect("write what a machine was saved by");
        }
        machine
    }

    /// The command that runs in a machine before it is saved. If BPF programs can enforce there, it loads them, which takes
    /// most of the time of a start. Tests that end enforcement and start it again load them themselves. Half of the files
    /// that a start labels are in tracefs, which is not mounted: tests that need it mount it.
    fn preparation(&self) -> &'static str {
        if KNOWN.contains(&self.kernel.as_str()) && self.lsm.split(',').any(|module| module == "bpf") {
            "umount /sys/kernel/tracing
             grep -q ' /sys/fs/bpf ' /proc/mounts || mount -t bpf none /sys/fs/bpf; tollgate preload"
        } else {
            "true"
        }
    }

    /// Boots and saves a machine with the files that most tests need: a shell, and the test program.
    fn boot_and_save(&self, machine: &Path) {
        let tests = format!("{}:/tests", word(&env::current_exe().expect("the test program's path")));
        let (hardware, timeout) = (self.words(), BOOT_TIMEOUT.to_string());
        let hardware: Vec<&str> = hardware.iter().map(String::as_str).collect();
        let first = ["vm", "save", "-o", word(machine), "--timeout", &timeout, "--file", &tests];
        let _place = take(1);
        Scratch::new().run(&[&first[..], &hardware, &["--", "sh", "-c", self.preparation()]].concat()).with(0);
    }
}

/// Identifies the program: another one, or a newer build of it, has another value.
fn built() -> String {
    let metadata = fs::metadata(BUILT).expect("the program is built");
    format!("{} {} {}", metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}
