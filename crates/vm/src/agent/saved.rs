//! The guest's half of saving a machine: the agent waits, and each guest that goes on becomes a separate machine.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, PermissionsExt, symlink},
    },
    path::Path,
    time::{Duration, SystemTime},
};

use nix::{
    sys::time::TimeSpec,
    time::{ClockId, clock_settime},
};

use super::{PORT, random, send, wait_for_device};
use crate::{
    channel::{Continue, Decoder, Frame, Waiting},
    cpio::{self, Kind},
    order::Order,
};

/// The disk with the files that are sent when the machine goes on.
const PARCEL: &str = "/dev/vda";
/// Bytes that are read from the disk at a time.
const PIECE: usize = 1 << 20;
/// A file's time can be behind the clock by one tick of the kernel's timer: at most 10 ms (HZ=100).
const TIMER_TICK: Duration = Duration::from_millis(10);
/// The kernel's number of its call (linux/fs.h).
const BLKFLSBUF: libc::c_ulong = 0x1261;

/// Reports that the machine can be saved, and waits for the order of the guest that goes on.
pub(super) fn wait(port: &mut File, order: &Order, begun: SystemTime) -> Result<Order, String> {
    if !wait_for_device(Path::new(PARCEL)) {
        return Err(format!(
            "{PARCEL} does not come: the kernel has no driver of virtio disks, so nothing could be sent"
        ));
    }
    let untouched = (!order.argv.is_empty()).then(|| untouched(begun));
    send(port, &Frame::Waiting(Waiting { untouched })).map_err(|e| format!("{PORT}: {e}"))?;
    let next = receive(port)?;
    set_time(next.time).map_err(|e| format!("set the time: {e}"))?;
    // Two guests that go on from one machine must not draw the same random numbers.
    random::reseed(&next.seed).map_err(|e| format!("reseed the random number generator: {e}"))?;
    unpack(next.parcel).map_err(|e| format!("unpack what was sent: {e}"))?;
    Ok(next.order)
}

/// Files of the root file system that have not changed since.
fn untouched(since: SystemTime) -> Vec<String> {
    let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().saturating_sub(TIMER_TICK);
    let mut found = Vec::new();
    if let Ok(root) = fs::metadata("/") {
        walk(Path::new("/"), root.dev(), since, &mut found);
    }
    found
}

/// A file that cannot be read counts as changed: it is sent again.
fn walk(folder: &Path, device: u64, since: Duration, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let changed = Duration::new(metadata.ctime().cast_unsigned(), metadata.ctime_nsec() as u32);
        if metadata.dev() != device {
            continue;
        } else if metadata.is_dir() {
            walk(&entry.path(), device, since, found);
        } else if changed < since {
            found.extend(entry.path().to_str().map(str::to_owned));
        }
    }
}

fn receive(port: &mut File) -> Result<Continue, String> {
    let mut decoder = Decoder::default();
    let mut buffer = [0; 4096];
    loop {
        match decoder.next_frame() {
            Ok(Some(Frame::Continue(next))) => return Ok(next),
            Ok(Some(_)) => return Err("the host sent something else than the next order".into()),
            Ok(None) => {}
            Err(e) => return Err(e.to_string()),
        }
        match port.read(&mut buffer).map_err(|e| format!("{PORT}: {e}"))? {
            0 => return Err(format!("{PORT}: nothing comes any more")),
            count => decoder.push(&buffer[..count]),
        }
    }
}

fn set_time(time: Duration) -> nix::Result<()> {
    clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::from_duration(time))
}

/// Unpacks the files that the host has sent into the root file system.
fn unpack(length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    let disk = File::open(PARCEL)?;
    // Blocks that were read before the machine was saved belong to another parcel.
    forget(&disk)?;
    cpio::read(&mut BufReader::with_capacity(PIECE, (&disk).take(length)), &mut |path, kind| {
        place(Path::new(path), kind).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))
    })?;
    forget(&disk)
}

/// Drops the disk's blocks from the page cache.
fn forget(disk: &File) -> io::Result<()> {
    // SAFETY: this request takes no argument.
    match unsafe { libc::ioctl(disk.as_raw_fd(), BLKFLSBUF as _) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn place(path: &Path, kind: Kind<'_>) -> io::Result<()> {
    if matches!(kind, Kind::Directory) {
        return fs::create_dir_all(path);
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    // A new file: the old one may be a running program.
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    match kind {
        Kind::Directory => Ok(()),
        Kind::Symlink(target) => symlink(target, path),
        Kind::File(mode, content) => {
            let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
            copy(content, &mut file)?;
            file.set_permissions(fs::Permissions::from_mode(mode))
        }
    }
}

/// Copies in pieces of the reader's buffer, which is larger than that of [`io::copy`].
fn copy(from: &mut dyn BufRead, to: &mut File) -> io::Result<()> {
    loop {
        let piece = from.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        to.write_all(piece)?;
        let length = piece.len();
        from.consume(length);
    }
}
