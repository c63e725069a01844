//! Machines that have booted, saved in folders, from which guests go on: each as if it had booted for itself, in a fraction
//! of the time.
//!
//! The guest's memory is a file, which each guest that goes on maps for itself: what it writes there is its own. The state of
//! processor and devices is another. A guest that goes on gets its command, the time and random bytes through the channel;
//! its files come by the first disk, as an archive.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Seek},
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use tollgate_host::process::Limits;

use crate::{
    Error, Image, Kernel, Machine, Wire,
    channel::{Continue, Frame},
    error::Context,
    guest::{self, Ended, Failure, Guest, GuestCommand, Outcome, Stream, Until},
    image,
    machine::{Saving, Wiring},
    monitor::Monitor,
    order::Order,
};

/// Drivers of the disk by which files are sent.
pub const DRIVERS: [&str; 2] = ["virtio_pci", "virtio_blk"];
/// Bytes of that disk, which cannot grow when a machine goes on. Its image is sparse.
const PARCEL_SIZE: u64 = 8 << 30;
/// The number of random bytes that each guest gets.
const SEED: usize = 64;

const RECORD: &str = "machine.json";
const MEMORY: &str = "memory";
const STATE: &str = "state";
const KERNEL: &str = "kernel";

/// A machine that was saved.
#[derive(Debug, Clone)]
pub struct Saved {
    folder: PathBuf,
    record: Record,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    /// The version line of the emulator: another one may not understand the state.
    emulator: String,
    /// Digest of this program, which is also the agent.
    program: String,
    machine: Machine,
    kernel: Kernel,
    /// Digests of the files that the machine has.
    files: BTreeMap<String, String>,
}

/// Boots a machine, runs a command in it if there is one, and saves it in a new folder once that has succeeded.
pub fn save(
    (machine, kernel): (&Machine, &Kernel),
    image: &Image,
    command: &GuestCommand,
    limits: Limits<'_>,
    folder: &Path,
    on_output: &mut dyn FnMut(Stream, &[u8]),
) -> Result<(), Failure> {
    let made = beside(folder)?;
    let files = boot_and_save(machine, image, command, limits, made.path(), on_output)?;
    let record = Record {
        emulator: guest::emulator_version()?,
        program: image::program_digest()?,
        machine: Machine { kernel: KERNEL.into(), ..machine.clone() },
        kernel: kernel.clone(),
        files,
    };
    fs::copy(&machine.kernel, made.path().join(KERNEL)).context(format!("copy {}", machine.kernel.display()))?;
    let text = serde_json::to_vec_pretty(&record).map_err(io::Error::from).context("write the machine's record")?;
    fs::write(made.path().join(RECORD), text).context("write the machine's record")?;
    let path = made.keep();
    Ok(fs::rename(path, folder).context(format!("make {}", folder.display()))?)
}

/// Makes a folder that is renamed when it is complete, so that nobody finds half a machine.
fn beside(folder: &Path) -> Result<tempfile::TempDir, Error> {
    if folder.exists() {
        return Err(Error::SavedBefore { folder: folder.into() });
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix(".tollgate-")
        .tempdir_in(parent)
        .context(format!("make a folder in {}", parent.display()))
}

/// Boots the machine and saves it. Returns the digests of the files that it has.
fn boot_and_save(
    machine: &Machine,
    image: &Image,
    command: &GuestCommand,
    limits: Limits<'_>,
    folder: &Path,
    on_output: &mut dyn FnMut(Stream, &[u8]),
) -> Result<BTreeMap<String, String>, Failure> {
    let private = guest::private_folder()?;
    let saving = saving(private.path(), folder, false)?;
    let wiring = wiring(private.path(), saving);
    let monitor = guest::listen(&private.path().join(guest::MONITOR))?;
    guest::write_image(image, &Order { save: true, ..guest::order(image, command) }, &wiring.initrd)?;
    let mut guest = Guest::start(machine, &wiring, limits)?;
    let ended = guest.follow(Until::Word, &mut guest::only_hears(on_output)).and_then(|ended| {
        if matches!(ended, Ended::Waiting(_)) {
            Monitor::of_saved(guest.accept(&monitor)?)?.save(&private.path().join(STATE), &folder.join(STATE))?;
        }
        Ok(ended)
    });
    let waiting = match ended {
        Ok(Ended::Waiting(waiting)) => waiting,
        ended => {
            let status = guest.stop(ended)?.status();
            return Err(Error::NotSaved { status }.into());
        }
    };
    let mut files = image.digests();
    if let Some(untouched) = waiting.untouched {
        files.retain(|path, _| untouched.contains(path));
    }
    Ok(files)
}

impl Saved {
    /// Opens the machine in a folder, if this program and this emulator can continue it.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let absent = |reason: String| Error::NotASavedMachine { folder: folder.into(), reason };
        let text = fs::read(folder.join(RECORD)).map_err(|e| absent(format!("{RECORD}: {e}")))?;
        let record: Record = serde_json::from_slice(&text).map_err(|e| absent(format!("{RECORD}: {e}")))?;
        let folder = folder.to_path_buf();
        let emulator = guest::emulator_version()?;
        if record.emulator != emulator {
            return Err(Error::SavedByOther { folder, then: record.emulator, now: emulator });
        }
        if record.program != image::program_digest()? {
            let (then, now) = ("another build of this program".into(), "this one".into());
            return Err(Error::SavedByOther { folder, then, now });
        }
        Ok(Self { folder, record })
    }

    /// The machine's kernel.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.record.kernel
    }

    /// Continues the machine with a command, with the files of `image` that it lacks, and with a network card if it gets
    /// a wire. The saved machine does not change.
    pub fn run(
        &self,
        image: &Image,
        command: &GuestCommand,
        wire: Option<&Wire>,
        limits: Limits<'_>,
        on_output: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Outcome, Failure> {
        let private = guest::private_folder()?;
        let saving = saving(private.path(), &self.folder, true)?;
        let parcel = write_parcel(&image.beyond(&self.record.files), &saving.parcel)?;
        let wiring = wiring(private.path(), saving);
        let monitor = guest::listen(&private.path().join(guest::MONITOR))?;
        let machine = Machine { kernel: self.folder.join(KERNEL), ..self.record.machine.clone() };
        let order = Order { wire: wire.is_some(), ..guest::order(image, command) };
        let _plugged = wire.map(Wire::plug).transpose()?;
        let mut guest = Guest::start(&machine, &wiring, limits)?;
        let go_on = || {
            let mut monitor = Monitor::of_saved(guest.accept(&monitor)?)?;
            monitor.go_on(&self.folder.join(STATE), &private.path().join(STATE))?;
            wire.map_or(Ok(()), |wire| monitor.plug(wire))?;
            guest.send(&Frame::Continue(next(order, parcel)?))
        };
        let ended = go_on().and_then(|()| guest.follow(Until::Word, &mut guest::only_hears(on_output)));
        guest.stop(ended)
    }
}

fn next(order: Order, parcel: u64) -> Result<Continue, Error> {
    let mut seed = vec![0; SEED];
    File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut seed)).context("read /dev/urandom")?;
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(Continue { order, time, seed, parcel })
}

fn wiring(private: &Path, saving: Saving) -> Wiring {
    let monitor = Some(private.join(guest::MONITOR));
    Wiring { monitor, saving: Some(saving), ..Wiring::boot(private.join("initrd"), private.join("agent")) }
}

/// The wiring for saving, with an empty parcel.
fn saving(private: &Path, folder: &Path, goes_on: bool) -> Result<Saving, Error> {
    let parcel = private.join("parcel");
    let made = File::create(&parcel).and_then(|file| file.set_len(PARCEL_SIZE));
    made.context(format!("write {}", parcel.display()))?;
    Ok(Saving { memory: folder.join(MEMORY), parcel, goes_on })
}

/// Writes the archive of the files, and returns its length in bytes.
fn write_parcel(image: &Image, path: &Path) -> Result<u64, Error> {
    let what = || format!("write {}", path.display());
    let mut file = File::options().write(true).open(path).context(what())?;
    image.write_entries(&mut file).context(what())?;
    let length = file.stream_position().context(what())?;
    file.set_len(PARCEL_SIZE.max(length)).context(what())?;
    Ok(length)
}
