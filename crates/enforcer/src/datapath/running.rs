//! Labels in packets, while the daemon runs: in its own network namespace, and in all that confined processes use.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use libbpf_rs::{MapCore, MapFlags, MapHandle, libbpf_sys};
use tollgate_abi::enforcer::{
    TG_NAMESPACES_FREE, TG_NAMESPACES_FULL, TG_NAMESPACES_HALF, tg_fullness, tg_labelled_socket,
};
use tollgate_client::network::UnlabelledDevice;
use tracing::warn;

use super::{
    attach::{self, Looked, Way, Wrong},
    namespaces::{self, Open, Others},
    netlink::Socket,
    place::{self, Place, Task},
    programs::Programs,
    routes::Labelled,
    watch::{Changes, Watch},
};
use crate::{
    iterator,
    programs::{self, Pins, ProgramsError},
    state::State,
};

/// How often the daemon looks for programs that somebody has detached: nobody announces it.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// After a look that took this long, it rests for [`REST`] times as long: routes of a router change all the time.
const LONG_LOOK: Duration = Duration::from_millis(50);
const REST: u32 = 4;
/// In how many namespaces packets are labelled. Confined tasks get no internet sockets in others.
const MAX_NAMESPACES: usize = 1024;
/// How many devices a report names.
const MAX_DEVICES_REPORTED: usize = 256;

/// Why packets cannot be labelled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatapathError {
    /// The programs are not in the kernel.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// The kernel does not say what is in a network namespace, or announce what changes.
    #[error("cannot look at network devices: {0}")]
    Network(#[from] io::Error),
}

/// A network namespace whose packets are labelled.
#[derive(Debug)]
struct Namespace {
    place: Place,
    /// The number of its file, and a process that was in it.
    number: u64,
    process: u32,
    /// Its number in the daemon's.
    nsid: i32,
    /// Whether it is in the map: its devices have programs, as far as the daemon knows.
    covered: bool,
}

/// A socket of a confined process in a namespace, as the programs tell it.
#[derive(Debug, Clone, Copy)]
pub struct Met {
    /// The number of the namespace's file, and its cookie.
    pub number: u64,
    /// See `number`.
    pub cookie: u64,
    /// The process; 0: it is not known.
    pub process: u32,
}

/// Labels in packets.
#[derive(Debug)]
pub struct Datapath {
    pins: Pins,
    folder: PathBuf,
    way: Way,
    programs: Programs,
    networks: Vec<Labelled>,
    /// By cookie. The programs know those in the map.
    namespaces: BTreeMap<u64, Namespace>,
    map: MapHandle,
    state: State,
    own: u64,
    own_nsid: i32,
    socket: Socket,
    watch: Watch,
    checked: Instant,
    /// What has changed and was not looked at yet, and when that is due.
    changes: Changes,
    due: Instant,
    counts: Looked,
    /// Namespaces were removed from the map that are not gone.
    uncovered: bool,
}

impl Datapath {
    /// Begins in the daemon's namespace, and in those where an earlier daemon has begun. `folder` is the daemon's.
    pub fn start(pins: &Pins, folder: &Path, networks: Vec<Labelled>) -> Result<Self, DatapathError> {
        let (programs, map) = (Programs::load(pins)?, programs::map(pins, MAP)?);
        let state = State::new(programs::map(pins, "bss")?)?;
        // Before anything is looked at, so that nothing is missed.
        let (socket, watch) = (Socket::open()?, Watch::begin()?);
        let own = namespaces::of_process(std::process::id())?;
        let mut datapath = Self {
            pins: pins.clone(),
            folder: folder.to_owned(),
            way: Way::of_kernel(),
            programs,
            networks,
            namespaces: BTreeMap::new(),
            map,
            state,
            own: socket.cookie()?,
            own_nsid: namespaces::nsid(&socket, &own)?,
            socket,
            watch,
            checked: Instant::now(),
            changes: Changes::default(),
            due: Instant::now(),
            counts: Looked::default(),
            uncovered: false,
        };
        datapath.begin(&own, std::process::id())?;
        datapath.adopt();
        Ok(datapath)
    }

    /// Goes on in the namespaces of an earlier daemon. Those that cannot be found are forgotten: a process in one will
    /// be reported again.
    fn adopt(&mut self) {
        let known = cookies(&self.map);
        for Open { file, process } in namespaces::all().into_values() {
            let cookie = cookie(&file);
            if cookie.is_ok_and(|cookie| known.contains(&cookie) && !self.namespaces.contains_key(&cookie)) {
                self.try_begin(&file, process);
            }
        }
        for cookie in known.iter().filter(|cookie| !self.namespaces.contains_key(cookie)) {
            // It may have been removed by somebody else already.
            let _ = self.map.delete(&cookie.to_ne_bytes());
            self.uncovered = true;
        }
    }

    /// Labels other networks from now on.
    pub fn set_networks(&mut self, networks: Vec<Labelled>) {
        if networks != self.networks {
            self.networks = networks;
            self.look_at(|_| true);
        }
    }

    /// Labels packets in a namespace. If it is not found, sockets there wait, and are reported again when they are used.
    pub fn enter(&mut self, met: Met, others: &mut Others) {
        let Met { number, cookie: wanted, process } = met;
        let known = self.namespaces.get(&wanted);
        if known.is_some_and(|own| own.covered) || (known.is_none() && self.namespaces.len() >= MAX_NAMESPACES) {
            return;
        }
        let Some(Open { file, process }) = others.find(number, process) else { return };
        // A number may be another namespace's by now.
        if cookie(&file).is_ok_and(|cookie| cookie == wanted) {
            self.try_begin(&file, process);
        }
    }

    fn try_begin(&mut self, namespace: &File, process: u32) {
        if let Err(cause) = self.begin(namespace, process) {
            warn!(%cause, "packets in a network namespace (process {process}) are not labelled: {cause}");
        }
    }

    fn begin(&mut self, namespace: &File, process: u32) -> io::Result<()> {
        let (cookie, nsid) = (cookie(namespace)?, namespaces::nsid(&self.socket, namespace)?);
        // The end of the one that had this number before was not announced.
        self.forget(|other, own| own.nsid == nsid && *other != cookie);
        let place = Place::open(&self.pins, &self.folder, self.way, cookie)?;
        let number = namespaces::number(namespace)?;
        if namespaces::is_users(namespace) {
            self.state.set_users_namespaces();
        }
        self.namespaces.insert(cookie, Namespace { place, number, process, nsid, covered: false });
        self.look_in(cookie, namespace)?;
        self.map.update(&cookie.to_ne_bytes(), &1_u32.to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other)?;
        self.namespaces.entry(cookie).and_modify(|own| own.covered = true);
        Ok(())
    }

    /// What changes in a namespace cannot be followed, so nothing is sent there any more.
    fn uncover(&mut self, cookie: u64) {
        self.namespaces.entry(cookie).and_modify(|own| own.covered = false);
        let _ = self.map.delete(&cookie.to_ne_bytes());
        self.uncovered = true;
    }

    /// Whether namespaces were removed from the map since the last call.
    pub fn take_uncovered(&mut self) -> bool {
        std::mem::take(&mut self.uncovered)
    }

    /// Does what changes demand. Returns whether there may be new pins.
    pub fn follow(&mut self) -> bool {
        let before = self.counts;
        if let Err(cause) = self.watch.changes(self.own_nsid, &mut self.changes) {
            warn!(%cause, "the kernel does not say what changes in networks: {cause}");
            self.changes.lost = true;
        }
        let began = Instant::now();
        if began >= self.due {
            let Changes { namespaces, gone, lost } = std::mem::take(&mut self.changes);
            self.forget(|_, own| gone.contains(&own.nsid));
            self.look_at(|own| lost || namespaces.contains(&own.nsid));
            if self.checked.elapsed() >= CHECK_INTERVAL {
                self.checked = began;
                self.look_at(|own| !own.place.is_whole());
            }
            let took = began.elapsed();
            self.due = if took > LONG_LOOK { Instant::now() + took * REST } else { began };
        }
        self.counts != before
    }

    /// When it will look at what has changed; `None`: nothing has.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        (self.changes != Changes::default()).then_some(self.due)
    }

    /// Whether packets can be labelled in other namespaces, too.
    #[must_use]
    pub fn fullness(&self) -> tg_fullness {
        match self.namespaces.len() {
            MAX_NAMESPACES.. => TG_NAMESPACES_FULL,
            count if count >= MAX_NAMESPACES / 2 => TG_NAMESPACES_HALF,
            _ => TG_NAMESPACES_FREE,
        }
    }

    fn look_at(&mut self, which: impl Fn(&Namespace) -> bool) {
        let chosen = self.namespaces.iter().filter(|(_, own)| which(own));
        let chosen: Vec<_> = chosen.map(|(cookie, own)| (*cookie, own.nsid, own.number, own.process)).collect();
        let mut others = Others::default();
        for (cookie, nsid, number, process) in chosen {
            let found = others.find(number, process).or_else(|| others.search(number));
            // It is gone, or descriptors keep it that are on their way between processes.
            let Some(Open { file, process }) = found else {
                if namespaces::is_known(&self.socket, nsid) {
                    self.uncover(cookie);
                } else {
                    self.forget(|own, _| *own == cookie);
                }
                continue;
            };
            self.namespaces.entry(cookie).and_modify(|own| own.process = process);
            if let Err(cause) = self.look_in(cookie, &file) {
                warn!(%cause, "packets in a network namespace may not be labelled: {cause}");
            }
        }
    }

    fn look_in(&mut self, cookie: u64, namespace: &File) -> io::Result<()> {
        let Some(own) = self.namespaces.get_mut(&cookie) else { return Ok(()) };
        let task = Task { programs: &self.programs, networks: &self.networks };
        let place = &mut own.place;
        self.counts += if cookie == self.own {
            place.look(&task)?
        } else {
            namespaces::enter(namespace.as_fd(), || place.look(&task))?
        };
        Ok(())
    }

    /// Forgets namespaces that are gone.
    fn forget(&mut self, is_gone: impl Fn(&u64, &Namespace) -> bool) {
        let gone: Vec<u64> =
            self.namespaces.iter().filter(|(cookie, own)| is_gone(cookie, own)).map(|(cookie, _)| *cookie).collect();
        for cookie in gone {
            self.namespaces.remove(&cookie);
            attach::forget(&self.pins, cookie);
            let _ = fs::remove_file(place::memory_of(&self.folder, cookie));
            let _ = self.map.delete(&cookie.to_ne_bytes());
        }
    }

    /// The devices whose packets have no labels, and how many of them are left out.
    #[must_use]
    pub fn unlabelled(&self) -> (Vec<UnlabelledDevice>, u64) {
        let all = self.namespaces.values().flat_map(|own| own.place.wrong().map(move |wrong| (own, wrong)));
        let mut devices = Vec::new();
        let mut left_out = 0;
        for (own, Wrong { device, why, remedy }) in all {
            if devices.len() == MAX_DEVICES_REPORTED {
                left_out += 1;
                continue;
            }
            let (device, why, remedy) = (device.clone(), why.clone(), remedy.clone());
            devices.push(UnlabelledDevice { device, namespace: own.number, process: own.process, why, remedy });
        }
        (devices, left_out)
    }

    /// The sockets that have labels, in all namespaces.
    pub fn sockets(&self, labels: BorrowedFd<'_>) -> io::Result<Vec<tg_labelled_socket>> {
        let program = self.programs.sockets().ok_or(io::ErrorKind::NotFound)?;
        let mut which = libbpf_sys::bpf_iter_link_info::default();
        which.map.map_fd = labels.as_raw_fd().cast_unsigned();
        Ok(iterator::records(&iterator::run(program.as_fd(), which)?))
    }

    /// In how many namespaces packets can be labelled.
    #[must_use]
    pub fn room() -> usize {
        MAX_NAMESPACES
    }

    /// What was done since the daemon began.
    #[must_use]
    pub fn counts(&self) -> Looked {
        self.counts
    }

    /// How many namespaces it is in, and how many programs are attached.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.namespaces.len(), self.namespaces.values().map(|own| own.place.count()).sum())
    }
}

impl AsFd for Datapath {
    /// Readable when something has changed.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

/// The map of namespaces, by which programs know that packets there are labelled.
const MAP: &str = "namespaces";

fn cookies(map: &MapHandle) -> Vec<u64> {
    map.keys().filter_map(|key| key.try_into().ok().map(u64::from_ne_bytes)).collect()
}

fn cookie(namespace: &File) -> io::Result<u64> {
    namespaces::enter(namespace.as_fd(), || Socket::open()?.cookie())
}

/// Ends it, whether or not a daemon runs: detaches the programs in all namespaces, and restores their routes.
pub fn end(pins: &Pins, folder: &Path) {
    let Ok(map) = programs::map(pins, MAP) else { return };
    let (known, way) = (cookies(&map), Way::of_kernel());
    let found = if known.is_empty() { BTreeMap::new() } else { namespaces::all() };
    for Open { file, .. } in found.into_values() {
        let leave = |cookie| {
            let mut place = Place::open(pins, folder, way, cookie)?;
            namespaces::enter(file.as_fd(), || place.leave())
        };
        let left = cookie(&file).and_then(|cookie| if known.contains(&cookie) { leave(cookie) } else { Ok(()) });
        if let Err(cause) = left {
            warn!(%cause, "labels of packets are not ended in a network namespace: {cause}");
        }
    }
    attach::remove_all(pins);
    let _ = fs::remove_dir_all(pins.datapath());
    for cookie in known {
        let _ = fs::remove_file(place::memory_of(folder, cookie));
        let _ = map.delete(&cookie.to_ne_bytes());
    }
}
