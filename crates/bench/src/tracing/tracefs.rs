//! The kernel's tracing file system: an instance and probes of our own, which are removed at the end.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    thread::sleep,
    time::Duration,
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sys::statfs::{TRACEFS_MAGIC, statfs},
};

use super::event::Probe;
use crate::{Error, error::Context};

/// The possible mount points.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The inode of the first process namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h), in which the tracer numbers tasks.
const FIRST_NAMESPACE: u64 = 0xefff_fffc;
/// The prefix of instances; the process number and the purpose follow.
const PREFIX: &str = "tollgate-";
/// The group of our probes; the process number follows.
const GROUP: &str = "tollgate_";
/// How often, and at which interval, a busy file is tried again.
const MAX_RETRIES: u32 = 50;
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The mounted file system.
#[derive(Debug)]
pub(super) struct Tracefs {
    root: PathBuf,
    ours: bool,
}

impl Tracefs {
    /// Finds it, or mounts it for as long as this value lives; removes what killed processes of this program have left.
    pub(super) fn open() -> Result<Self, Error> {
        if !nix::unistd::geteuid().is_root() {
            return Err(Error::Unavailable("the kernel's tracer is root's: run it as root".to_owned()));
        }
        let namespace = fs::metadata("/proc/self/ns/pid").context("look at /proc/self/ns/pid")?.ino();
        if namespace != FIRST_NAMESPACE {
            let why = "the kernel's tracer knows processes by the numbers of the machine, and this is a process namespace of a \
                       container: run it outside, or in a guest with --kernel";
            return Err(Error::Unavailable(why.to_owned()));
        }
        let is_mounted = |path: &str| statfs(path).is_ok_and(|found| found.filesystem_type() == TRACEFS_MAGIC);
        let tracefs = match MOUNTS.into_iter().find(|path| is_mounted(path)) {
            Some(path) => Self { root: PathBuf::from(path), ours: false },
            None => {
                let point = MOUNTS[0];
                mount(Some("tracefs"), point, Some("tracefs"), MsFlags::empty(), None::<&str>).map_err(|errno| {
                    Error::Unavailable(format!(
                        "cannot mount tracefs at {point}: {}; the kernel needs CONFIG_FUNCTION_TRACER, and lockdown may not be \
                         at confidentiality; --kernel counts in a guest",
                        errno.desc()
                    ))
                })?;
                Self { root: PathBuf::from(point), ours: true }
            }
        };
        tracefs.clean();
        Ok(tracefs)
    }

    /// The path of a file in it.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    pub(super) fn read(&self, file: &str) -> Result<String, Error> {
        read(&self.path(file))
    }

    /// Removes what ended processes have left. Instances with our own number belong to an earlier process, or to an earlier
    /// session that could not remove them.
    fn clean(&self) {
        let own = process::id().to_string();
        let gone = |process: &str| process == own || !process.is_empty() && !Path::new("/proc").join(process).exists();
        for entry in fs::read_dir(self.path("instances")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
            if owner.is_some_and(gone) {
                let _ = fs::remove_dir(entry.path());
            }
        }
        let Ok(probes) = self.read("kprobe_events") else { return };
        for probe in probes.lines().filter_map(|line| line.split(' ').next()?.split_once(':')) {
            let owner = probe.1.strip_prefix(GROUP).and_then(|rest| rest.split('/').next());
            if owner.is_some_and(gone) {
                let _ = write(&self.path("kprobe_events"), &format!("-:{}", probe.1));
            }
        }
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        let is_ours = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Another session found it mounted, and needs it: an open file makes it busy, too.
        let used = fs::read_dir(self.path("instances")).into_iter().flatten().flatten().any(is_ours);
        if self.ours && !used {
            let _ = umount2(&self.root, MntFlags::empty());
        }
    }
}

/// A set of buffers with its own events. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Instance {
    folder: PathBuf,
}

impl Instance {
    /// `kilobytes` is the size per processor.
    pub(super) fn make(tracefs: &Tracefs, purpose: &str, kilobytes: u32) -> Result<Self, Error> {
        let folder = tracefs.path("instances").join(format!("{PREFIX}{}-{purpose}", process::id()));
        fs::create_dir(&folder).context(format!("make the tracing instance {}", folder.display()))?;
        let instance = Self { folder };
        instance.write("tracing_on", "0")?;
        // Strictly ascending over all processors and instances.
        instance.write("trace_clock", "counter")?;
        instance.write("buffer_size_kb", &kilobytes.to_string()).map_err(|error| {
            Error::Unavailable(format!(
                "{error}: the kernel has not {kilobytes} KB a processor: give a smaller --buffer"
            ))
        })?;
        Ok(instance)
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    pub(super) fn read(&self, file: &str) -> Result<String, Error> {
        read(&self.path(file))
    }

    pub(super) fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        write(&self.path(file), text)
    }

    /// The buffer of each processor.
    pub(super) fn buffers(&self) -> Result<Vec<(u16, File)>, Error> {
        let folder = self.path("per_cpu");
        let mut buffers = Vec::new();
        for entry in fs::read_dir(&folder).context(format!("read {}", folder.display()))?.flatten() {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.strip_prefix("cpu")?.parse().ok())
            else {
                continue;
            };
            let path = entry.path().join("trace_pipe_raw");
            let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
            buffers.push((number, file.context(format!("open {}", path.display()))?));
        }
        Ok(buffers)
    }

    /// How many records did not fit.
    pub(super) fn lost(&self) -> Result<u64, Error> {
        let folder = self.path("per_cpu");
        let mut lost = 0;
        for entry in fs::read_dir(&folder).context(format!("read {}", folder.display()))?.flatten() {
            lost += lost_of(&read(&entry.path().join("stats"))?);
        }
        Ok(lost)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Its files are closed; the tracer may need a moment.
        let _ = self.write("tracing_on", "0");
        let _ = self.write("current_tracer", "nop");
        for _ in 0..MAX_RETRIES {
            if fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            sleep(RETRY_INTERVAL);
        }
    }
}

/// Parses the lines of a buffer's `stats`.
fn lost_of(stats: &str) -> u64 {
    let lines = stats.lines().filter_map(|line| line.split_once(": "));
    let lost = lines.filter(|(name, _)| ["overrun", "commit overrun", "dropped events"].contains(name));
    lost.filter_map(|(_, number)| number.trim().parse::<u64>().ok()).sum()
}

/// Probes on kernel functions. Dropping it removes them; no instance may have them enabled then.
#[derive(Debug)]
pub(super) struct Probes {
    file: PathBuf,
    profile: PathBuf,
    group: String,
    /// The probes whose functions the kernel has, with their events' names.
    pub(super) made: Vec<(String, Probe)>,
}

impl Probes {
    pub(super) fn make(tracefs: &Tracefs, wanted: &[Probe]) -> Result<Self, Error> {
        let group = format!("{GROUP}{}", process::id());
        let (file, profile) = (tracefs.path("kprobe_events"), tracefs.path("kprobe_profile"));
        let mut probes = Self { file, profile, group, made: Vec::new() };
        let mut failed = None;
        for probe in wanted {
            // The profile has no groups; the process number makes the name unique there.
            let name = format!("{}_{}_{}", probe.function, probe.register.trim_start_matches('%'), process::id());
            let Probe { function, register, .. } = probe;
            // A function's return address is what its caller has put on the stack.
            let line = format!("p:{}/{name} {function} object={register} caller=$stack0", probes.group);
            match write(&probes.file, &line) {
                Ok(()) => probes.made.push((name, *probe)),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if probes.made.is_empty() => Err(Error::Unavailable(format!(
                "no probe can be set in this kernel, which needs CONFIG_KPROBE_EVENTS and no lockdown: {error}"
            ))),
            _ => Ok(probes),
        }
    }

    /// The folder of a probe's event, below `events`.
    pub(super) fn event(&self, name: &str) -> String {
        format!("events/{}/{name}", self.group)
    }

    /// How often a probe was passed and could not be recorded: in an interrupt, while another probe was being handled
    /// (kprobe_ftrace_handler, arch/x86/kernel/kprobes/ftrace.c). A larger buffer does not help.
    pub(super) fn missed(&self) -> Result<u64, Error> {
        let is_ours = |event: &str| self.made.iter().any(|(name, _)| name == event);
        Ok(missed(&read(&self.profile)?, is_ours))
    }
}

/// Parses the lines of `kprobe_profile`: the event, how often the probe was passed, and how often it was missed.
fn missed(profile: &str, is_ours: impl Fn(&str) -> bool) -> u64 {
    let own = profile.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|event| is_ours(event))?;
        words.nth(1)?.parse::<u64>().ok()
    });
    own.sum()
}

impl Drop for Probes {
    fn drop(&mut self) {
        for (name, _) in &self.made {
            let line = format!("-:{}/{name}", self.group);
            for _ in 0..MAX_RETRIES {
                if write(&self.file, &line).is_ok() {
                    break;
                }
                sleep(RETRY_INTERVAL);
            }
        }
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).context(format!("read {}", path.display()))
}

/// Appends; for most of these files that is the same as writing, and truncating would clear some.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let written = File::options().append(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|cause: io::Error| Error::Io { what: format!("write {text:?} to {}", path.display()), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up_what_did_not_fit() {
        let stats = "entries: 12\noverrun: 3\ncommit overrun: 1\nbytes: 44\noldest event ts: 5.1\ndropped events: 2\n";
        assert_eq!(lost_of(stats), 6);
    }

    #[test]
    fn adds_up_what_our_probes_missed() {
        let profile =
            "  tcp_close_di_7    12    2\n  tcp_close_di_8    12    4\n\n  exit_creds_di_7\n  exit_creds_di_7 5 1\n";
        assert_eq!(missed(profile, |event| event.ends_with("_7")), 3);
    }
}
