//! BPF programs on LSM hooks that decide nothing: empty ones, for the cost of being attached, and those of
//! [`super::latency`].
//!
//! A child loads them, pins them and ends. In the measuring process, a hundred link descriptors and the memory in which
//! libbpf held the kernel's types would make every fork and exec a fifth dearer.

mod reached;

use std::{
    fs,
    io::{self, Read, Write, pipe},
    path::PathBuf,
};

use libbpf_rs::{
    Link, MapCore, Object, ObjectBuilder, OpenObject, PrintLevel,
    btf::{Btf, types::Func},
    set_print,
};
use nix::{
    sys::wait::waitpid,
    unistd::{ForkResult, fork},
};

pub use self::reached::REACHED_HOOKS;
use super::securityfs::require;
use crate::{Error, error::Context};

/// One program per hook of `tollgate_abi::HOOKS`, with the hook's name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Programs {
    /// The object file.
    pub(super) object: &'static [u8],
    /// A description for people.
    pub(super) what: &'static str,
    /// Where links and maps are pinned, on the kernel's BPF file system.
    pub(super) pins: &'static str,
    /// Maps that are pinned beside the links: the name in the object, the name of the pin.
    pub(super) maps: &'static [(&'static str, &'static str)],
}

/// Programs that do nothing.
pub(super) const EMPTY: Programs = Programs {
    object: include_bytes!(concat!(env!("OUT_DIR"), "/empty.bpf.o")),
    what: "empty programs",
    pins: "/sys/fs/bpf/tollgate-bench",
    maps: &[],
};

/// Attached programs. Dropping it detaches them.
#[derive(Debug)]
pub(super) struct Pinned(pub(super) PathBuf);

impl Drop for Pinned {
    fn drop(&mut self) {
        // A pin that remains is reported by the next attempt to pin under its name.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Attaches a program to each requested hook, or, if the list is empty, to those that the workloads reach; returns a
/// description.
pub(super) fn attach(programs: Programs, asked: &[String]) -> Result<(String, Pinned), Error> {
    require("bpf")?;
    let pins = programs.pins;
    match fs::create_dir(pins) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            let what = programs.what;
            return Err(Error::Unavailable(format!("bpf: {what} are attached already; remove {pins} to detach them")));
        }
        other => other.context(format!("make {pins} (mount -t bpf bpf /sys/fs/bpf)"))?,
    }
    let pinned = Pinned(pins.into());
    let (mut answer, mut tell) = pipe().context("make a pipe")?;
    // SAFETY: a job measures on one thread and starts none before this, so the child may allocate and take locks.
    match unsafe { fork() }.context("fork the loader")? {
        ForkResult::Child => {
            let (status, text) = match attach_and_pin(programs, asked) {
                Ok(text) => (0, text),
                Err(error) => (1, error.to_string()),
            };
            // If the parent is gone, nobody can receive the message.
            let _ = tell.write_all(text.as_bytes());
            // SAFETY: `_exit` has no preconditions; what the parent registered for its own exit must not run here.
            unsafe { libc::_exit(status) }
        }
        ForkResult::Parent { child } => {
            drop(tell);
            let mut text = String::new();
            answer.read_to_string(&mut text).context("hear from the loader")?;
            match waitpid(child, None).context("wait for the loader")? {
                nix::sys::wait::WaitStatus::Exited(_, 0) => Ok((text, pinned)),
                nix::sys::wait::WaitStatus::Exited(..) => Err(Error::Unavailable(text)),
                other => Err(Error::Unavailable(format!("bpf: the loader ended with {other:?}"))),
            }
        }
    }
}

fn attach_and_pin(programs: Programs, asked: &[String]) -> Result<String, Error> {
    // libbpf's messages go to standard error, and that traffic would disturb the measurement.
    set_print(None::<(PrintLevel, fn(PrintLevel, String))>);
    let btf = btf()?;
    let Choice { hooks, absent } = choose(asked, |hook| has(&btf, hook))?;
    let Loaded { mut object, refused } =
        load_accepted(programs.what, &hooks, !asked.is_empty(), |hooks| load(programs, hooks))?;
    let attached = pin_all(programs, &mut object)?;
    Ok(describe(attached, programs.what, &absent, &refused))
}

/// The hooks that the workloads reach and the running kernel has.
pub(super) fn reached() -> Result<Vec<String>, Error> {
    let btf = btf()?;
    let hooks = REACHED_HOOKS.iter().copied().filter(|hook| has(&btf, hook));
    Ok(hooks.map(ToOwned::to_owned).collect())
}

fn btf() -> Result<Btf<'static>, Error> {
    Btf::from_vmlinux()
        .map_err(|error| Error::Unavailable(format!("bpf: {error}; a kernel with CONFIG_DEBUG_INFO_BTF is needed")))
}

fn has(btf: &Btf<'_>, hook: &str) -> bool {
    btf.type_by_name::<Func<'_>>(&format!("bpf_lsm_{hook}")).is_some()
}

/// Which hooks to attach to.
#[derive(Debug, PartialEq, Eq)]
struct Choice<'a> {
    hooks: Vec<&'a str>,
    /// Hooks of the default set that the running kernel does not have.
    absent: Vec<&'a str>,
}

/// A hook that was requested by name must exist; from the default set, those that the kernel has are used.
fn choose<'a>(asked: &'a [String], has: impl Fn(&str) -> bool) -> Result<Choice<'a>, Error> {
    if asked.is_empty() {
        let (hooks, absent) = REACHED_HOOKS.iter().copied().partition(|hook| has(hook));
        return Ok(Choice { hooks, absent });
    }
    for hook in asked {
        let why = match (tollgate_abi::hook(hook).is_some(), has(hook)) {
            (true, true) => continue,
            (true, false) => format!("this kernel has no hook {hook}; leave it out"),
            // abi/lsm_hooks.h leaves it out for this reason.
            (false, true) => format!(
                "no program can be attached to the hook {hook}: kernels refuse it (bpf_lsm_disabled_hooks, \
                 kernel/bpf/bpf_lsm.c); leave it out, or delay it by the kernel's own module tollgate_latency"
            ),
            (false, false) => {
                format!("{hook:?} is no LSM hook of this kernel; `tollgate hooks graph KERNEL --list` lists a kernel's")
            }
        };
        return Err(Error::Unavailable(format!("bpf: {why}")));
    }
    let mut hooks: Vec<&str> = asked.iter().map(String::as_str).collect();
    hooks.sort_unstable();
    hooks.dedup();
    Ok(Choice { hooks, absent: Vec::new() })
}

/// The programs that the kernel accepted.
#[derive(Debug)]
struct Loaded<'a, T> {
    object: T,
    /// Hooks of the default set to which the kernel lets no program attach.
    refused: Vec<&'a str>,
}

/// Loads the programs of all hooks at once, or, if that fails, those of the hooks that the kernel accepts.
///
/// Requested hooks must all be accepted. From the default set some must be: if the kernel accepts none, the hooks are not the
/// reason, and a measurement without programs would pass for one with empty programs.
fn load_accepted<'a, T>(
    what: &str,
    hooks: &[&'a str],
    asked: bool,
    load: impl Fn(&[&str]) -> Result<T, String>,
) -> Result<Loaded<'a, T>, Error> {
    if hooks.is_empty() {
        return Err(Error::Unavailable("bpf: this kernel has none of the hooks; boot one with CONFIG_BPF_LSM".into()));
    }
    let cannot_load = |error| Error::Unavailable(format!("bpf: cannot load the {what}: {error}"));
    let error = match load(hooks) {
        Ok(object) => return Ok(Loaded { object, refused: Vec::new() }),
        Err(error) => error,
    };
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for hook in hooks {
        match load(&[*hook]) {
            Ok(_) => accepted.push(*hook),
            Err(error) if asked => {
                return Err(Error::Unavailable(format!(
                    "bpf: this kernel attaches no program to the hook {hook}: {error}; leave it out"
                )));
            }
            Err(_) => refused.push(*hook),
        }
    }
    if accepted.is_empty() {
        return Err(cannot_load(format!("{error}; run it as root, on a kernel that is not locked down")));
    }
    let object = load(&accepted).map_err(cannot_load)?;
    Ok(Loaded { object, refused })
}

fn describe(attached: usize, what: &str, absent: &[&str], refused: &[&str]) -> String {
    let mut text = format!("bpf: {attached} {what} attached");
    for (what, hooks) in [("not in this kernel", absent), ("refused by this kernel", refused)] {
        if !hooks.is_empty() {
            text += &format!("; {what}: {}", hooks.join(" "));
        }
    }
    text
}

fn open(programs: Programs) -> Result<OpenObject, libbpf_rs::Error> {
    ObjectBuilder::default().name("bench")?.open_memory(programs.object)
}

fn load(programs: Programs, hooks: &[&str]) -> Result<Object, String> {
    let failed = |error| format!("{error:#}");
    let mut object = open(programs).map_err(failed)?;
    for mut program in object.progs_mut() {
        let wanted = program.name().to_str().is_some_and(|name| hooks.contains(&name));
        program.set_autoload(wanted);
    }
    object.load().map_err(failed)
}

/// Attaches every loaded program, pins its link under the hook's name, and pins the maps; returns the number of programs.
fn pin_all(programs: Programs, object: &mut Object) -> Result<usize, Error> {
    for mut map in object.maps_mut() {
        let own = map.name().to_string_lossy().into_owned();
        if let Some((_, pin)) = programs.maps.iter().find(|(name, _)| own == *name) {
            let failed = |error| Error::Unavailable(format!("bpf: cannot pin the map {own}: {error:#}"));
            map.pin(format!("{}/{pin}", programs.pins)).map_err(failed)?;
        }
    }
    let mut attached = 0;
    for program in object.progs_mut().filter(|program| program.autoload()) {
        let hook = program.name().to_string_lossy().into_owned();
        let failed = |what: &str, error| Error::Unavailable(format!("bpf: cannot {what} the hook {hook}: {error:#}"));
        let mut link: Link = program.attach_lsm().map_err(|error| failed("attach to", error))?;
        link.pin(format!("{}/{hook}", programs.pins)).map_err(|error| failed("pin the program of", error))?;
        attached += 1;
    }
    Ok(attached)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn holds_one_program_for_each_hook() {
        let object = open(EMPTY).unwrap();
        let programs: BTreeSet<String> =
            object.progs().map(|program| program.name().to_str().unwrap().to_owned()).collect();
        let hooks: BTreeSet<String> = tollgate_abi::HOOKS.iter().map(|hook| hook.name.to_owned()).collect();
        assert_eq!(programs, hooks);
    }

    /// A program is `w0 = default; exit`: opcode 0xb4 with the default as immediate, then 0x95.
    #[test]
    fn returns_the_default_of_each_hook() {
        for program in open(EMPTY).unwrap().progs() {
            let hook = tollgate_abi::hook(program.name().to_str().unwrap()).unwrap();
            let instructions = program.insns();
            assert_eq!(instructions.len(), 2, "{}", hook.name);
            assert_eq!(instructions[0].code, 0xb4, "{}", hook.name);
            assert_eq!(instructions[0].imm, hook.default, "{}", hook.name);
            assert_eq!(instructions[1].code, 0x95, "{}", hook.name);
        }
    }

    #[test]
    fn takes_of_the_default_set_what_the_kernel_has() {
        let choice = choose(&[], |hook| hook != "file_post_open").unwrap();
        assert_eq!(choice.absent, ["file_post_open"]);
        assert_eq!(choice.hooks.len() + 1, REACHED_HOOKS.len());
    }

    #[test]
    fn rejects_hooks_that_do_not_exist() {
        let asked = |name: &str| vec!["file_open".to_owned(), name.to_owned()];
        let unknown = asked("file_opening");
        let unknown = choose(&unknown, |hook| hook == "file_open").unwrap_err().to_string();
        assert!(unknown.contains("\"file_opening\" is no LSM hook") && unknown.contains("--list"), "{unknown}");
        // The kernel has the hook, and accepts no program for it.
        let refused = asked("vm_enough_memory");
        let refused = choose(&refused, |_| true).unwrap_err().to_string();
        assert!(refused.contains("no program can be attached to the hook vm_enough_memory"), "{refused}");
        assert!(refused.contains("leave it out"), "{refused}");
        let truncate = asked("file_truncate");
        let absent = choose(&truncate, |hook| hook != "file_truncate");
        let absent = absent.unwrap_err().to_string();
        assert!(absent.contains("no hook file_truncate"), "{absent}");
    }

    /// A kernel that accepts no program for the named hooks; it returns the hooks that it accepted.
    fn kernel_without(refused: &[&str]) -> impl Fn(&[&str]) -> Result<Vec<String>, String> {
        move |hooks| match hooks.iter().find(|hook| refused.contains(hook)) {
            Some(hook) => Err(format!("{hook}: invalid argument")),
            None => Ok(hooks.iter().map(|hook| hook.to_string()).collect()),
        }
    }

    #[test]
    fn leaves_out_hooks_of_the_default_set_that_the_kernel_refuses() {
        let loaded = load_accepted("programs", &["capable", "file_open"], false, kernel_without(&["capable"])).unwrap();
        assert_eq!((loaded.object, loaded.refused), (vec!["file_open".to_owned()], vec!["capable"]));
        let loaded = load_accepted("programs", &["capable", "file_open"], false, kernel_without(&[])).unwrap();
        assert_eq!((loaded.object.len(), loaded.refused), (2, vec![]));
    }

    #[test]
    fn rejects_a_kernel_that_takes_no_program_at_all() {
        let hooks = ["capable", "file_open"];
        let none = load_accepted("programs", &hooks, false, kernel_without(&hooks)).unwrap_err().to_string();
        assert!(none.contains("capable: invalid argument; run it as root"), "{none}");
        let no_hooks = load_accepted("programs", &[], false, kernel_without(&[])).unwrap_err().to_string();
        assert!(no_hooks.contains("boot one with CONFIG_BPF_LSM"), "{no_hooks}");
    }

    #[test]
    fn rejects_a_hook_asked_for_that_the_kernel_refuses_and_says_why() {
        let error = load_accepted("programs", &["capable", "file_open"], true, kernel_without(&["file_open"]));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("the hook file_open: file_open: invalid argument; leave it out"), "{error}");
    }

    #[test]
    fn reports_hooks_that_were_left_out() {
        assert_eq!(
            describe(2, "empty programs", &["file_post_open"], &["file_alloc_security"]),
            "bpf: 2 empty programs attached; not in this kernel: file_post_open; \
             refused by this kernel: file_alloc_security"
        );
    }
}
