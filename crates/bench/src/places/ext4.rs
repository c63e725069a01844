//! An ext4 on a block device in memory, identical in every run, byte by byte.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::{Error, error::Context};

/// The first RAM disk of the module brd.
pub(super) const DEVICE: &str = "/dev/ram0";

/// e2fsprogs' program by its two names; under the second one, a guest's busybox has another program without ext4.
const PROGRAMS: [&str; 2] = ["mkfs.ext4", "mke2fs"];

/// Fixed, so that directory hashes and checksums are the same in every run; it also identifies a file system of an earlier
/// run.
const UUID: &str = "746f6c6c-6761-7465-8000-62656e636800";

/// The offset of ext4's UUID: `s_uuid` in the superblock, which starts at byte 1024.
const UUID_OFFSET: usize = 1024 + 0x68;

/// Bytes of the device that are inspected before it is overwritten. Partition tables and the signatures of file systems
/// and volumes lie within them: that of btrfs, the furthest, is at 64 KiB.
const INSPECTED_BYTES: usize = 1 << 20;

/// Creates the file system, unless the device holds something else.
pub(super) fn make(device: &Path) -> Result<(), Error> {
    if !may_overwrite(&head(device)?) {
        return Err(Error::Unavailable(format!(
            "{} holds data that Tollgate did not put there: unload the module brd and load it again, or choose :tmpfs",
            device.display()
        )));
    }
    let output = run_mkfs(device)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
    Err(Error::Unavailable(format!("could not make an ext4 on {}: {first}", device.display())))
}

fn run_mkfs(device: &Path) -> Result<Output, Error> {
    for program in PROGRAMS {
        let ran = Command::new(program)
            .args(["-q", "-t", "ext4", "-U", UUID, "-E"])
            // Leaves nothing to the kernel's ext4lazyinit thread, which would run during the measurement.
            .arg(format!("hash_seed={UUID},lazy_itable_init=0,lazy_journal_init=0"))
            .arg(device)
            // libext2fs takes its time stamps from this variable.
            .env("E2FSPROGS_FAKE_TIME", "1767225600")
            .stdin(Stdio::null())
            .output();
        match ran {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            other => return other.context(format!("run {program}")),
        }
    }
    Err(Error::Unavailable(
        "cannot make an ext4: there is no mke2fs on PATH; install the package e2fsprogs, or choose :tmpfs".into(),
    ))
}

fn head(device: &Path) -> Result<Vec<u8>, Error> {
    let file = File::open(device).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Error::Unavailable(format!(
            "there is no {}: load the module brd (modprobe brd rd_nr=1 rd_size=65536), or choose :tmpfs",
            device.display()
        )),
        _ => Error::Io { what: format!("open {}", device.display()), cause: e },
    })?;
    let mut head = Vec::with_capacity(INSPECTED_BYTES);
    // A device may be smaller.
    file.take(INSPECTED_BYTES as u64).read_to_end(&mut head).context(format!("read {}", device.display()))?;
    Ok(head)
}

/// Whether the device is empty or holds a file system of an earlier run.
fn may_overwrite(head: &[u8]) -> bool {
    let ours: Vec<u8> = UUID.bytes().filter(|b| *b != b'-').collect();
    let uuid: String = head.iter().skip(UUID_OFFSET).take(16).map(|byte| format!("{byte:02x}")).collect();
    head.iter().all(|byte| *byte == 0) || uuid.as_bytes() == ours
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn allows_an_empty_device_and_one_of_an_earlier_run() {
        let mut head = vec![0; INSPECTED_BYTES];
        assert!(may_overwrite(&head));
        let uuid = *b"tollgate\x80\0bench\0";
        let uuid: Vec<u8> = uuid.to_vec();
        head[1080] = 0x53; // the magic number
        head[UUID_OFFSET..UUID_OFFSET + 16].copy_from_slice(&uuid);
        assert!(may_overwrite(&head));
    }

    #[test]
    fn denies_a_device_with_other_data() {
        let mut head = vec![0; INSPECTED_BYTES];
        head[INSPECTED_BYTES - 1] = 1;
        assert!(!may_overwrite(&head));
    }

    #[test]
    fn denies_a_device_that_holds_a_btrfs() {
        let device = tempfile::NamedTempFile::new().unwrap();
        device.as_file().set_len(16 << 20).unwrap();
        // The magic number of the superblock at 64 KiB; all before it may be zero.
        device.as_file().write_all_at(b"_BHRfS_M", (64 << 10) + 64).unwrap();
        let error = make(device.path()).unwrap_err().to_string();
        assert!(error.contains("holds data that Tollgate did not put there"), "{error}");
    }

    #[test]
    fn looks_at_a_device_smaller_than_the_head() {
        let device = tempfile::NamedTempFile::new().unwrap();
        device.as_file().set_len(64 << 10).unwrap();
        assert_eq!(head(device.path()).unwrap(), [0; 64 << 10]);
    }

    #[test]
    fn rejects_a_missing_device_with_the_remedy() {
        let error = make(Path::new("/nowhere/ram0")).unwrap_err().to_string();
        assert!(error.contains("load the module brd"), "{error}");
    }
}
