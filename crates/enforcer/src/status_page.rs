//! The status page (`status.h`): programs with a cache of decisions, which map it, see there that mode or policy have
//! changed. The file stays the same one for as long as the machine runs, because they keep it mapped.

use std::{
    fs::{File, OpenOptions, Permissions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use tempfile::Builder;
use tollgate_abi::{
    bytes_of,
    status::{TG_STATUS_DOMAINS, TG_STATUS_VERSION, tg_status_page},
};
use tracing::warn;

/// Where [`tg_status_page`] has its number of changes, and what follows it.
const SEQUENCE_AT: u64 = std::mem::offset_of!(tg_status_page, sequence) as u64;
const REST_AT: usize = std::mem::offset_of!(tg_status_page, enforcing);

/// What the page says. The default says that nothing is enforced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether what the policy denies is denied.
    pub enforcing: bool,
    /// The number of the generation in force; 0: nothing is enforced.
    pub generation: u32,
    /// Whether classes and permissions that the policy does not define are denied.
    pub deny_unknown: bool,
    /// The types of the permissive domains.
    pub permissive: Vec<u32>,
}

/// Tells programs that nothing is enforced any more. The page stays, because they look at it.
pub fn end(path: &Path) {
    if !path.exists() {
        return;
    }
    if let Err(cause) = Status::default().publish(path) {
        warn!(%cause, "programs that use libselinux go on checking: cannot write {}: {cause}", path.display());
    }
}

impl Status {
    /// Writes the page at `path`, and makes it if it is not there. Readers see it as it was before or after, since its
    /// number of changes is odd in between: also that of a daemon that was killed there.
    pub fn publish(&self, path: &Path) -> io::Result<()> {
        let file = open_or_make(path)?;
        let mut before = [0; 4];
        file.read_exact_at(&mut before, SEQUENCE_AT)?;
        let during = u32::from_ne_bytes(before) | 1;
        let page = self.page();
        file.write_all_at(&during.to_ne_bytes(), SEQUENCE_AT)?;
        file.write_all_at(&page.version.to_ne_bytes(), 0)?;
        file.write_all_at(&bytes_of(&page)[REST_AT..], REST_AT as u64)?;
        file.write_all_at(&during.wrapping_add(1).to_ne_bytes(), SEQUENCE_AT)
    }

    fn page(&self) -> tg_status_page {
        let mut page = tg_status_page {
            version: TG_STATUS_VERSION,
            enforcing: self.enforcing.into(),
            policyload: self.generation,
            deny_unknown: self.deny_unknown.into(),
            permissive: self.permissive.len() as u32,
            ..empty()
        };
        let told = self.permissive.len().min(TG_STATUS_DOMAINS as usize);
        page.domain[..told].copy_from_slice(&self.permissive[..told]);
        page
    }
}

fn empty() -> tg_status_page {
    tg_status_page { domain: [0; TG_STATUS_DOMAINS as usize], ..tg_status_page::default() }
}

/// Opens the page. A file of another length would end programs that read beyond its end, so it is replaced.
fn open_or_make(path: &Path) -> io::Result<File> {
    let open = || OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path);
    let whole = |file: &File| file.metadata().is_ok_and(|found| found.len() == size_of::<tg_status_page>() as u64);
    if let Ok(file) = open()
        && whole(&file)
    {
        return Ok(file);
    }
    let readable = Permissions::from_mode(0o644);
    let fresh = Builder::new().permissions(readable).tempfile_in(path.parent().unwrap_or(Path::new("/")))?;
    fresh.as_file().write_all_at(bytes_of(&empty()), 0)?;
    Ok(fresh.persist(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &Path) -> Vec<u32> {
        let bytes = std::fs::read(path).unwrap();
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect()
    }

    #[test]
    fn tells_what_is_in_force_and_counts_each_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status");
        let mut status = Status { enforcing: true, generation: 3, deny_unknown: true, permissive: vec![7, 9] };
        status.publish(&path).unwrap();
        assert_eq!(words(&path)[..9], [1, 2, 1, 3, 1, 2, 7, 9, 0]);
        status.permissive.clear();
        status.publish(&path).unwrap();
        assert_eq!(words(&path)[..9], [1, 4, 1, 3, 1, 0, 0, 0, 0]);
        Status::default().publish(&path).unwrap();
        assert_eq!(words(&path)[..9], [1, 6, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn keeps_the_file_that_programs_have_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status");
        Status::default().publish(&path).unwrap();
        let mapped = File::open(&path).unwrap();
        Status { generation: 5, ..Status::default() }.publish(&path).unwrap();
        let mut policyload = [0; 4];
        mapped.read_exact_at(&mut policyload, 12).unwrap();
        assert_eq!(u32::from_ne_bytes(policyload), 5);
        assert_eq!(mapped.metadata().unwrap().permissions().mode() & 0o777, 0o644);
    }

    #[test]
    fn ends_a_change_in_which_a_daemon_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status");
        Status::default().publish(&path).unwrap();
        let page = OpenOptions::new().write(true).open(&path).unwrap();
        page.write_all_at(&5u32.to_ne_bytes(), SEQUENCE_AT).unwrap();
        Status::default().publish(&path).unwrap();
        assert_eq!(words(&path)[1], 6);
    }

    #[test]
    fn tells_as_many_permissive_domains_as_there_is_room_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status");
        Status { permissive: (1..=2000).collect(), ..Status::default() }.publish(&path).unwrap();
        let words = words(&path);
        assert_eq!((words.len(), words[5], words.last()), (1024, 2000, Some(&TG_STATUS_DOMAINS)));
    }

    #[test]
    fn ends_enforcement_in_a_page_that_is_there_and_makes_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status");
        end(&path);
        assert!(!path.exists());
        Status { enforcing: true, generation: 2, ..Status::default() }.publish(&path).unwrap();
        end(&path);
        assert_eq!(words(&path)[..4], [1, 4, 0, 0]);
    }

    #[test]
    fn replaces_a_page_that_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status");
        std::fs::write(&path, [0; 20]).unwrap();
        Status { generation: 2, ..Status::default() }.publish(&path).unwrap();
        assert_eq!((words(&path).len(), words(&path)[3]), (1024, 2));
    }
}
