//! Loads the programs. The kernel verifies each by itself, so several threads load them at once, each its part of them, by
//! an object of its own. All objects have the same maps, which the first one makes and pins.

use std::{
    fs,
    num::NonZeroUsize,
    panic,
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use libbpf_rs::{AsRawLibbpf, IterOpts, Object, OpenObject, ProgramType, libbpf_sys};
use nix::time::{ClockId, clock_gettime};
use tollgate_abi::{bytes_of, enforcer::tg_kernel};

use super::{
    Pins, ProgramsError, THREADS, checked,
    compiled::{self, Compiled},
    is_inquiry, listen, map_name, refused,
};
use crate::{progress::Progress, shares::Size};

/// At most this many threads load programs: each has the kernel's types in its memory, and a descriptor of each map.
const MAX_THREADS: usize = 4;

/// What the verifier reads of each program.
static VERIFIED: &str = include_str!("../../verified.tsv");
/// Likewise, of a program that the table lacks.
const UNKNOWN: u64 = 10_000;

/// The modules of the kernel that tell a socket's peer.
const LABELLING: [&str; 3] = ["selinux", "apparmor", "smack"];

/// How programs are loaded.
#[derive(Debug, Clone, Default)]
pub struct Loading {
    /// The sizes of new maps that differ from the default.
    pub sizes: Vec<Size>,
    /// How many bytes of decision tables new maps hold.
    pub tables: usize,
    /// How many threads load; `None`: as many as there are processors.
    pub threads: Option<NonZeroUsize>,
    /// Where it is reported what each thread took.
    pub progress: Progress,
}

/// Loads the programs of `hooks`, and those that the daemon runs, using the pinned maps if there are any. Pins what was
/// not pinned. If one thread fails, no program stays loaded.
pub fn load(pins: &Pins, hooks: &[String], loading: &Loading) -> Result<Vec<Object>, ProgramsError> {
    pins.make()?;
    let compiled = compiled::beside(pins, loading.tables)?;
    let mut first = compiled.enforcer()?;
    adapt(&mut first)?;
    let wanted = first.progs().filter_map(|program| {
        let name = program.name().to_string_lossy().into_owned();
        let wanted = if is_inquiry(program.section()) { !pins.inquiry(&name).exists() } else { hooks.contains(&name) };
        wanted.then_some(name)
    });
    let mut parts = deal(wanted.collect(), threads(loading)).into_iter();
    select(&mut first, &parts.next().unwrap_or_default());
    make_maps(pins, &mut first, &loading.sizes)?;
    let objects = listen("load the programs", || at_once(pins, compiled, first, parts.as_slice(), &loading.progress))?;
    objects.iter().try_for_each(|object| pin_inquiries(pins, object))?;
    Ok(objects)
}

/// How many threads load.
fn threads(loading: &Loading) -> usize {
    let threads = loading.threads.or_else(|| thread::available_parallelism().ok());
    threads.map_or(1, NonZeroUsize::get).min(MAX_THREADS)
}

/// What the verifier reads of a program, on the first kernel of the table: others differ little.
fn cost(program: &str) -> u64 {
    let mut lines = VERIFIED.lines().map(|line| line.split('\t'));
    let found = lines.find_map(|mut line| (line.next()? == program).then(|| line.next()?.parse().ok())?);
    found.unwrap_or(UNKNOWN)
}

/// Deals programs out to threads, so that the verifier has about as much to read in each.
fn deal(mut programs: Vec<String>, threads: usize) -> Vec<Vec<String>> {
    programs.sort_by_cached_key(|program| u64::MAX - cost(program));
    let mut parts = vec![(0, Vec::new()); threads.clamp(1, programs.len().max(1))];
    for program in programs {
        if let Some((sum, part)) = parts.iter_mut().min_by_key(|(sum, _)| *sum) {
            *sum += cost(&program);
            part.push(program);
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

fn select(object: &mut OpenObject, names: &[String]) {
    for mut program in object.progs_mut() {
        let wanted = names.iter().any(|name| program.name() == name.as_str());
        program.set_autoload(wanted);
    }
}

/// Makes and pins the maps that are not pinned, and uses the others.
fn make_maps(pins: &Pins, object: &mut OpenObject, sizes: &[Size]) -> Result<(), ProgramsError> {
    for mut map in object.maps_mut() {
        let name = map_name(&map.name().to_string_lossy());
        let pin = pins.map(&name);
        if let Some(size) = sizes.iter().rfind(|size| size.room.name() == name) {
            map.set_max_entries(size.places).map_err(refused(format!("make room for {}", size.places)))?;
        }
        if pin.exists() {
            map.reuse_pinned_map(&pin).map_err(refused(format!("use the pinned map {}", pin.display())))?;
        } else {
            map.set_pin_path(&pin).map_err(refused(format!("pin a map as {}", pin.display())))?;
        }
    }
    // SAFETY: the object is open, and nobody else has it.
    let prepare = || checked(unsafe { libbpf_sys::bpf_object__prepare(object.as_libbpf_object().as_ptr()) });
    listen("make the maps", prepare).map(drop)
}

/// Loads the first object, and at once one for each other part.
fn at_once(
    pins: &Pins,
    compiled: &Compiled,
    first: OpenObject,
    others: &[Vec<String>],
    progress: &Progress,
) -> libbpf_rs::Result<Vec<Object>> {
    thread::scope(|scope| {
        let load_part = |part: &[String]| timed(progress, || open_part(pins, compiled, part)?.load());
        let others: Vec<_> = others.iter().map(|part| scope.spawn(move || load_part(part))).collect();
        let first = timed(progress, || first.load());
        let join = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause));
        // All threads have ended before the first error is returned.
        let others: Vec<_> = others.into_iter().map(join).collect();
        [first].into_iter().chain(others).collect()
    })
}

/// An object with some of the programs, and the pinned maps.
fn open_part(pins: &Pins, compiled: &Compiled, part: &[String]) -> libbpf_rs::Result<OpenObject> {
    let mut object = compiled.open()?;
    select(&mut object, part);
    for mut map in object.maps_mut() {
        let pin = pins.map(&map_name(&map.name().to_string_lossy()));
        map.reuse_pinned_map(&pin)?;
    }
    Ok(object)
}

/// Does a thread's work, and reports the processor's time that it took.
fn timed<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
    let now = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default();
    let before = now();
    let done = work();
    progress.thread(now() - before);
    done
}

/// Pins the programs that the daemon runs.
fn pin_inquiries(pins: &Pins, object: &Object) -> Result<(), ProgramsError> {
    for mut program in object.progs_mut().filter(|program| program.autoload() && is_inquiry(program.section())) {
        let pin = pins.inquiry(&program.name().to_string_lossy());
        let pinned = match program.prog_type() {
            ProgramType::Syscall => program.pin(&pin),
            // Its reader names the process.
            _ if program.name() == THREADS => program.pin(&pin),
            // An iterator runs when its pin is read.
            _ => program.attach_iter_with_opts(IterOpts::None).and_then(|mut link| link.pin(&pin)),
        };
        pinned.map_err(refused(format!("pin a program as {}", pin.display())))?;
    }
    Ok(())
}

/// Sets what differs between kernels and cannot be relocated: which arguments hooks have (`struct tg_kernel`).
fn adapt(object: &mut OpenObject) -> Result<(), ProgramsError> {
    let found = super::kernel()?;
    let kernel = tg_kernel {
        setattr_mapped: found.setattr_mapped.into(),
        perf_attributes: found.perf_attributes.into(),
        kprobes: event_source("kprobe"),
        uprobes: event_source("uprobe"),
        peers_untold: is_alone().into(),
        ..tg_kernel::default()
    };
    for mut map in object.maps_mut().filter(|map| map.name() == ".rodata.kernel") {
        map.set_initial_value(bytes_of(&kernel)).map_err(refused("adapt the programs"))?;
    }
    Ok(())
}

/// Whether no other module labels sockets. If that is not known, one may.
fn is_alone() -> bool {
    let modules = fs::read_to_string("/sys/kernel/security/lsm");
    modules.is_ok_and(|modules| !modules.trim().split(',').any(|module| LABELLING.contains(&module)))
}

/// The number of a source of performance events. If this kernel lacks it, a number that no source has.
fn event_source(name: &str) -> u32 {
    let number = fs::read_to_string(format!("/sys/bus/event_source/devices/{name}/type")).ok();
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn deals_out_each_program_once_and_about_as_much_to_each_thread() {
        let mut all: Vec<String> =
            VERIFIED.lines().skip(3).map(|line| line.split('\t').next().unwrap().to_owned()).collect();
        all.sort_unstable();
        for threads in 1..=MAX_THREADS {
            let parts = deal(all.clone(), threads);
            assert_eq!(parts.len(), threads);
            let mut dealt = parts.concat();
            dealt.sort_unstable();
            assert_eq!(dealt, all);
            let costs: Vec<u64> = parts.iter().map(|part| part.iter().map(|program| cost(program)).sum()).collect();
            let (least, most) = (costs.iter().min().unwrap(), costs.iter().max().unwrap());
            assert!(most - least < most / 50, "{costs:?}");
        }
    }

    #[test]
    fn has_no_threads_without_work_but_one() {
        assert_eq!(deal(names(&["task_prctl"]), 4), [names(&["task_prctl"])]);
        assert_eq!(deal(Vec::new(), 4), [names(&[])]);
    }

    #[test]
    fn knows_what_the_verifier_reads_of_a_program() {
        assert!(cost("inode_rename") > 2 * cost("binder_transaction"));
        assert_eq!((cost("program"), cost("new")), (UNKNOWN, UNKNOWN));
    }
}
