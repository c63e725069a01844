//! The guard's programs, loaded: all of them at its start, and later those that somebody has detached.

use std::{collections::HashSet, ffi::OsStr, sync::OnceLock};

use libbpf_rs::{
    IterOpts, MapCore, Object, ObjectBuilder, OpenObject, ProgramType,
    btf::{Btf, types::Func},
};

use super::{Guard, GuardError};
use crate::programs::{self, Pins, ProgramsError, is_inquiry, listen, map_name, refused};

impl Guard {
    /// The hooks that this kernel lacks: what they would check is not checked.
    pub fn missing() -> Result<Vec<String>, GuardError> {
        let functions = functions()?;
        let object = open()?;
        let hooks = object.progs().filter_map(|program| hook(program.section()));
        Ok(hooks.filter(|hook| !functions.contains(&format!("bpf_lsm_{hook}"))).collect())
    }

    /// The programs that are attached on this kernel, unless somebody has detached them.
    pub fn expected() -> Result<Vec<String>, GuardError> {
        let functions = functions()?;
        let object = open()?;
        let programs =
            object.progs().filter(|program| !is_inquiry(program.section()) && runs(program.section(), functions));
        Ok(programs.map(|program| program.name().to_string_lossy().into_owned()).collect())
    }

    /// Attaches programs again that somebody has detached. All others, and what the maps have, stay as they are.
    pub(super) fn attach_again(&self, gone: &[String]) -> Result<(), GuardError> {
        let mut object = open()?;
        for mut program in object.progs_mut() {
            program.set_autoload(gone.iter().any(|name| program.name() == OsStr::new(name)));
        }
        for mut map in object.maps_mut().filter(|map| is_pinned(map.name())) {
            let pin = self.pins.map(&map_name(&map.name().to_string_lossy()));
            map.reuse_pinned_map(&pin).map_err(refused(format!("use the pinned map {}", pin.display())))?;
        }
        let object = listen("load the guard's programs again", || object.load())?;
        programs::attach(&self.pins, &object)?;
        Ok(self.register(&object)?)
    }
}

/// Loads the programs whose hooks this kernel has, and pins the maps.
pub(super) fn all(pins: &Pins) -> Result<Object, ProgramsError> {
    let (functions, mut object) = (functions()?, open()?);
    for mut program in object.progs_mut() {
        program.set_autoload(runs(program.section(), functions));
    }
    let mut object = listen("load the guard's programs", || object.load())?;
    for mut map in object.maps_mut().filter(|map| is_pinned(map.name())) {
        let name = map_name(&map.name().to_string_lossy());
        map.pin(pins.map(&name)).map_err(refused(format!("pin the map {name}")))?;
    }
    for mut program in object.progs_mut().filter(|program| is_inquiry(program.section())) {
        let pin = pins.inquiry(&program.name().to_string_lossy());
        let pinned = match program.prog_type() {
            ProgramType::Syscall => program.pin(&pin),
            // An iterator runs when its pin is read.
            _ => program.attach_iter_with_opts(IterOpts::None).and_then(|mut link| link.pin(&pin)),
        };
        pinned.map_err(refused(format!("pin a program as {}", pin.display())))?;
    }
    Ok(object)
}

fn open() -> Result<OpenObject, ProgramsError> {
    listen("read the guard's programs", || ObjectBuilder::default().name("guard")?.open_memory(programs::GUARD))
}

/// Constants are each object's own.
fn is_pinned(map: &OsStr) -> bool {
    !map_name(&map.to_string_lossy()).starts_with("rodata")
}

/// Whether this kernel has the hook of a program's section, if the section names one.
fn runs(section: &OsStr, functions: &HashSet<String>) -> bool {
    hook(section).is_none_or(|hook| functions.contains(&format!("bpf_lsm_{hook}")))
}

/// The hook of a program's section; `None`: it has none.
fn hook(section: &OsStr) -> Option<String> {
    let section = section.to_str()?;
    section.strip_prefix("lsm/").or_else(|| section.strip_prefix("lsm.s/")).map(str::to_owned)
}

/// The LSM hooks of the running kernel that take programs. Read only once, because the kernel's types do not change.
fn functions() -> Result<&'static HashSet<String>, ProgramsError> {
    static FOUND: OnceLock<HashSet<String>> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let btf = Btf::from_vmlinux().map_err(|cause| ProgramsError::NoTypes { cause })?;
    let names = btf.type_by_kind::<Func<'_>>().filter_map(|function| function.name().map(OsStr::to_owned));
    let names = names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with("bpf_lsm_"));
    Ok(FOUND.get_or_init(|| names.collect()))
}
