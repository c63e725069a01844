//! The programs that network devices run (`bpf/datapath.bpf.c`): loaded once, pinned, and adopted by every later daemon.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
};

use libbpf_rs::{MapCore, OpenObject, Program};

use super::links::Framing;
use crate::{
    programs::{self, Pins, ProgramsError, refused},
    survival,
};

/// A program in the kernel.
#[derive(Debug)]
pub struct Loaded {
    descriptor: OwnedFd,
    /// Its number in the kernel.
    pub id: u32,
}

impl AsFd for Loaded {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Which way packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// They are sent.
    Egress,
    /// They are received.
    Ingress,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Egress, Self::Ingress];

    /// Its name, which pins and messages have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Egress => "egress",
            Self::Ingress => "ingress",
        }
    }
}

/// The iterator of `bpf/datapath/sockets.h`.
const SOCKETS: &str = "labelled_sockets";

/// The programs, by name.
#[derive(Debug)]
pub struct Programs(BTreeMap<String, Loaded>);

impl Programs {
    /// Opens those that are pinned. Loads and pins the others, with the pinned maps of enforcement.
    pub fn load(pins: &Pins) -> Result<Self, ProgramsError> {
        let folder = pins.datapath();
        fs::create_dir_all(&folder).map_err(|cause| ProgramsError::Pins { path: folder.clone(), cause })?;
        let mut object = programs::open_datapath(pins)?;
        let pin = |name: &str| folder.join(name);
        let names: Vec<String> = object.progs().map(|program| program.name().to_string_lossy().into_owned()).collect();
        if names.iter().any(|name| !pin(name).exists()) {
            for mut program in object.progs_mut() {
                let missing = !pin(&program.name().to_string_lossy()).exists();
                program.set_autoload(missing);
            }
            put(pins, object)?;
        }
        let open = |name: String| {
            let opened = Program::fd_from_pinned_path(pin(&name));
            let descriptor = opened.map_err(refused(format!("open the program {name}")))?;
            let id = survival::program_id(descriptor.as_fd())?;
            Ok((name, Loaded { descriptor, id }))
        };
        Ok(Self(names.into_iter().map(open).collect::<Result<_, ProgramsError>>()?))
    }

    /// The program for packets that look so; `None`: none is needed.
    #[must_use]
    pub fn of(&self, framing: Framing, direction: Direction) -> Option<&Loaded> {
        let framing = match (framing, direction) {
            (Framing::Ether, _) => "ether",
            (Framing::Ip, _) => "ip",
            (Framing::Loopback, Direction::Egress) => "loopback",
            // What was sent on the loopback device says where it comes from.
            (Framing::Loopback, Direction::Ingress) => return None,
        };
        self.0.get(&format!("{}_{framing}", direction.name()))
    }

    /// The program that lists sockets with labels.
    #[must_use]
    pub fn sockets(&self) -> Option<&Loaded> {
        self.0.get(SOCKETS)
    }
}

/// Loads what the object wants loaded. Pins maps and programs, and registers them as Tollgate's.
fn put(pins: &Pins, mut object: OpenObject) -> Result<(), ProgramsError> {
    for mut map in object.maps_mut() {
        if let Some(pin) = shared(pins, &map.name().to_string_lossy()).filter(|pin| pin.exists()) {
            map.reuse_pinned_map(&pin).map_err(refused(format!("use the pinned map {}", pin.display())))?;
        }
    }
    let mut object = programs::listen("load the programs of network devices", || object.load())?;
    // Before they have names by which others could open them.
    survival::protect(pins, &object)?;
    for mut map in object.maps_mut() {
        if let Some(pin) = shared(pins, &map.name().to_string_lossy()).filter(|pin| !pin.exists()) {
            map.pin(&pin).map_err(refused(format!("pin a map as {}", pin.display())))?;
        }
    }
    for mut program in object.progs_mut().filter(|program| program.autoload()) {
        let pin = pins.datapath().join(&*program.name().to_string_lossy());
        program.pin(&pin).map_err(refused(format!("pin a program as {}", pin.display())))?;
    }
    Ok(())
}

/// Where a map is pinned; `None`: it has the constants of this object alone.
fn shared(pins: &Pins, name: &str) -> Option<PathBuf> {
    (!name.ends_with(".rodata") && !name.starts_with(".rodata.str")).then(|| pins.map(&programs::map_name(name)))
}
