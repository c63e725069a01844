//! Programs on network devices. Since Linux 6.6 a device has links (tcx), whose pins keep them when no daemon runs. Before,
//! it has a queueing discipline `clsact` with filters, which stay until somebody removes them. Each look brings what is
//! attached to what should be.

mod filters;
mod tcx;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use tracing::warn;

use super::{
    links::Device,
    netlink::Socket,
    programs::{Direction, Loaded, Programs},
};
use crate::programs::Pins;

/// How programs are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By links.
    Links,
    /// By filters.
    Filters,
}

impl Way {
    /// The way of the running kernel.
    #[must_use]
    pub fn of_kernel() -> Self {
        if tcx::is_known() { Self::Links } else { Self::Filters }
    }
}

/// Where a program is attached: index of the device, and direction.
type Place = (u32, Direction);

/// What is attached in one network namespace.
#[derive(Debug)]
pub struct Attached {
    way: Way,
    /// `links` and `qdiscs` below the directory of pins.
    links: PathBuf,
    qdiscs: PathBuf,
    /// The namespace's cookie, with which its pins begin.
    cookie: u64,
    places: BTreeSet<Place>,
    /// What is wrong with devices, by index.
    wrong: BTreeMap<u32, Vec<Wrong>>,
}

/// Why packets of a device have no labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The device.
    pub device: String,
    /// What is wrong.
    pub why: String,
    /// What helps.
    pub remedy: String,
}

impl Wrong {
    /// No program reads packets of this kind of device.
    fn kind(device: &Device) -> Self {
        let name = &device.name;
        let why = format!("packets of this kind of device ({}) have no label", device.arphrd);
        let remedy =
            "keep traffic with zones off it, or use another kind, such as a tunnel with one other end".to_owned();
        Self { device: name.clone(), why, remedy }
    }

    /// The kernel has refused a program.
    fn refused(device: &Device, direction: Direction, way: Way, cause: &io::Error) -> Self {
        let name = &device.name;
        let remedy = match way {
            Way::Filters => format!(
                "if it has a queueing discipline `ingress` (`tc qdisc show dev {name}`), replace that by `clsact`, which has \
                 both directions: `tc qdisc del dev {name} ingress`"
            ),
            Way::Links => "look at the kernel's log, and at other programs on it: `bpftool net`".to_owned(),
        };
        let why = format!("the {} program cannot be attached: {cause}", direction.name());
        Self { device: name.clone(), why, remedy }
    }
}

/// What a look has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// Programs that were attached to devices without.
    pub attached: u64,
    /// Programs that somebody had detached, and that were attached again.
    pub put_back: u64,
    /// Programs that could not be attached.
    pub failed: u64,
}

impl std::ops::AddAssign for Looked {
    fn add_assign(&mut self, other: Self) {
        self.attached += other.attached;
        self.put_back += other.put_back;
        self.failed += other.failed;
    }
}

impl Attached {
    /// What is attached in the namespace with this cookie, of which nothing is known yet.
    pub fn new(pins: &Pins, way: Way, cookie: u64) -> io::Result<Self> {
        let [links, qdiscs] = ["links", "qdiscs"].map(|name| pins.datapath().join(name));
        fs::create_dir_all(&links)?;
        fs::create_dir_all(&qdiscs)?;
        Ok(Self { way, links, qdiscs, cookie, places: BTreeSet::new(), wrong: BTreeMap::new() })
    }

    /// How many programs are attached.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Whether all links are as they were made. Nobody is told when somebody detaches one.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.way == Way::Filters || self.places.iter().all(|place| tcx::is_attached(&self.link(*place)))
    }

    /// Attaches the programs to these devices of the namespace, unless they are attached. The calling thread is in the
    /// namespace, and so is the socket.
    pub fn look(&mut self, programs: &Programs, socket: &Socket, devices: &[Device]) -> Looked {
        self.forget_all_but(devices);
        let mut looked = Looked::default();
        for device in devices {
            let mut wrong = Vec::new();
            match device.framing() {
                None => wrong.push(Wrong::kind(device)),
                Some(framing) => {
                    let programs = Direction::ALL.into_iter().filter_map(|way| Some((way, programs.of(framing, way)?)));
                    for (direction, program) in programs {
                        looked += self.look_at(socket, device, direction, program, &mut wrong);
                    }
                }
            }
            self.report(device, wrong);
        }
        looked
    }

    fn look_at(
        &mut self,
        socket: &Socket,
        device: &Device,
        direction: Direction,
        program: &Loaded,
        wrong: &mut Vec<Wrong>,
    ) -> Looked {
        let place = (device.index, direction);
        let ensured = match self.way {
            Way::Links => tcx::ensure(&self.link(place), device.index, direction, program),
            Way::Filters => self.ensure_filter(socket, device.index, direction, program),
        };
        match ensured {
            Ok(new) => {
                let put_back = !self.places.insert(place) && new;
                if put_back {
                    let (name, direction) = (&device.name, direction.name());
                    warn!(device = name, "{name}: somebody has removed the {direction} program; it is attached again");
                }
                Looked { attached: u64::from(new && !put_back), put_back: put_back.into(), failed: 0 }
            }
            // It has gone meanwhile.
            Err(cause) if cause.raw_os_error() == Some(libc::ENODEV) => Looked::default(),
            Err(cause) => {
                wrong.push(Wrong::refused(device, direction, self.way, &cause));
                Looked { failed: 1, ..Looked::default() }
            }
        }
    }

    fn ensure_filter(&self, socket: &Socket, index: u32, direction: Direction, program: &Loaded) -> io::Result<bool> {
        if filters::is_there(socket, index, direction, program.id)? {
            return Ok(false);
        }
        if filters::make_qdisc(socket, index)? {
            // Says that it may be removed in the end.
            made(fs::create_dir(self.qdisc(index)))?;
        } else if direction == Direction::Egress && !filters::is_clsact(socket, index)? {
            return Err(io::Error::other(
                "its queueing discipline `ingress` has no place for programs on packets that leave",
            ));
        }
        filters::put(socket, index, direction, program)?;
        Ok(true)
    }

    /// Detaches all programs from these devices, which are all of the namespace.
    pub fn detach(&mut self, socket: &Socket, devices: &[Device]) {
        self.forget_all_but(devices);
        for device in devices {
            let detached = match self.way {
                Way::Links => self.detach_links(device.index),
                Way::Filters => self.detach_filters(socket, device.index),
            };
            if let Err(cause) = detached.or_else(gone) {
                warn!(device = device.name, %cause, "{}: the programs cannot be detached: {cause}", device.name);
            }
        }
        self.places.clear();
    }

    fn detach_links(&self, index: u32) -> io::Result<()> {
        let links = Direction::ALL.map(|direction| tcx::remove(&self.link((index, direction))));
        links.into_iter().try_for_each(|detached| detached.or_else(gone))
    }

    fn detach_filters(&self, socket: &Socket, index: u32) -> io::Result<()> {
        for direction in Direction::ALL {
            filters::remove(socket, index, direction).or_else(gone)?;
        }
        let qdisc = self.qdisc(index);
        if qdisc.exists() {
            fs::remove_dir(&qdisc)?;
            // Others may have put filters into it.
            if filters::are_none(socket, index)? {
                filters::remove_qdisc(socket, index)?;
            }
        }
        Ok(())
    }

    /// Removes what belongs to devices that are gone. The index of one may be another's later.
    fn forget_all_but(&mut self, devices: &[Device]) {
        let is_here = |index: u32| devices.iter().any(|device| device.index == index);
        self.places.retain(|(index, _)| is_here(*index));
        self.wrong.retain(|index, _| is_here(*index));
        for pin in pins_of(&self.links, self.cookie).filter(|pin| !is_here(pin.index)) {
            // It may be on a device that is in another namespace now.
            let _ = tcx::remove(&pin.path);
        }
        for pin in pins_of(&self.qdiscs, self.cookie).filter(|pin| !is_here(pin.index)) {
            let _ = fs::remove_dir(&pin.path);
        }
    }

    /// Remembers what is wrong with a device, and logs what was not before.
    fn report(&mut self, device: &Device, wrong: Vec<Wrong>) {
        let before = self.wrong.remove(&device.index).unwrap_or_default();
        for Wrong { device, why, remedy } in wrong.iter().filter(|wrong| !before.contains(wrong)) {
            warn!(device, "{device}: {why}: {remedy}");
        }
        if !wrong.is_empty() {
            self.wrong.insert(device.index, wrong);
        }
    }

    /// What is wrong with devices, by their indices.
    pub fn wrong(&self) -> impl Iterator<Item = &Wrong> {
        self.wrong.values().flatten()
    }

    fn link(&self, (index, direction): Place) -> PathBuf {
        self.links.join(format!("{}-{index}-{}", self.cookie, direction.name()))
    }

    fn qdisc(&self, index: u32) -> PathBuf {
        self.qdiscs.join(format!("{}-{index}", self.cookie))
    }
}

/// Detaches what links hold in namespaces that cannot be entered any more, and removes all other pins of devices.
pub fn remove_all(pins: &Pins) {
    let entries = |name| fs::read_dir(pins.datapath().join(name)).into_iter().flatten().flatten();
    entries("links").for_each(|pin| drop(tcx::remove(&pin.path())));
    entries("qdiscs").for_each(|pin| drop(fs::remove_dir(pin.path())));
}

/// Likewise of one namespace that is gone.
pub fn forget(pins: &Pins, cookie: u64) {
    pins_of(&pins.datapath().join("links"), cookie).for_each(|pin| drop(tcx::remove(&pin.path)));
    pins_of(&pins.datapath().join("qdiscs"), cookie).for_each(|pin| drop(fs::remove_dir(&pin.path)));
}

/// A pin, and the index of its device.
struct DevicePin {
    path: PathBuf,
    index: u32,
}

/// The pins of the devices of a namespace.
fn pins_of(folder: &Path, cookie: u64) -> impl Iterator<Item = DevicePin> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let name = entry.file_name().into_string().ok()?;
        let mut parts = name.split('-');
        (parts.next()?.parse() == Ok(cookie)).then_some(())?;
        Some(DevicePin { path: entry.path(), index: parts.next()?.parse().ok()? })
    })
}

/// Takes what is gone for removed.
fn gone(cause: io::Error) -> io::Result<()> {
    let is_gone = matches!(cause.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::EINVAL));
    if is_gone { Ok(()) } else { Err(cause) }
}

/// Takes what exists for made.
fn made(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|cause| if cause.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(cause) })
}
