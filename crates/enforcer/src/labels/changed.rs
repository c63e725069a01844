//! The files that another `file_contexts` labels differently. They are found without a walk of those that cannot be
//! concerned.

use std::{collections::HashSet, os::unix::ffi::OsStrExt, path::Path};

use crate::labels::{
    expression::prefix,
    file_contexts::{FileContexts, FileContextsError, specifications},
    filesystems,
    machine::{OVERLAY, is_served},
    mounts::{self, Covered, Mount},
};

/// Two `file_contexts`, and the prefixes of paths that they may label differently.
#[derive(Debug)]
pub struct Changed {
    before: FileContexts,
    after: FileContexts,
    prefixes: Vec<Vec<u8>>,
}

impl Changed {
    /// Compares two texts of `file_contexts`.
    pub fn between(before: &str, after: &str) -> Result<Self, FileContextsError> {
        let prefixes = changed(&lines(before), &lines(after)).into_iter().map(|line| prefix(line[0])).collect();
        let (before, after) = (FileContexts::new(before)?, FileContexts::new(after)?);
        Ok(Self { before, after, prefixes: shortest(prefixes) })
    }

    /// Whether no path is labelled differently.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Whether a path, or one below it, may be labelled differently.
    #[must_use]
    pub fn concerns(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        let is_above = |prefix: &[u8]| {
            let rest = prefix.strip_prefix(path);
            // The root ends in its slash.
            rest.is_some_and(|rest| rest.starts_with(b"/") || path == b"/")
        };
        self.prefixes.iter().any(|prefix| path.starts_with(prefix) || is_above(prefix))
    }

    /// The prefixes of paths that may be labelled differently.
    pub fn prefixes(&self) -> impl Iterator<Item = String> {
        self.prefixes.iter().map(|prefix| String::from_utf8_lossy(prefix).into_owned())
    }

    /// The label that a file with this path and mode gets now, if it got another one or none before. `None`: it gets
    /// the same as before, or none.
    pub fn label(&self, path: &Path, mode: u32) -> Result<Option<String>, FileContextsError> {
        if !self.concerns(path) {
            return Ok(None);
        }
        let (before, after) = (self.before.lookup(path, mode)?, self.after.lookup(path, mode)?);
        Ok(after.filter(|after| before.as_ref() != Some(after)))
    }

    /// The mounts in a mountinfo below which such files may be: each part of each file system that `file_contexts`
    /// label, once.
    pub fn places(&self, mountinfo: &[u8]) -> Vec<Mount> {
        let mut mounts = mounts::read(mountinfo);
        mounts.retain(|mount| {
            let kind = mount.filesystem.as_str();
            kind != OVERLAY && !is_served(kind) && !filesystems::may_be_by_path(kind)
        });
        mounts::widest_first(&mut mounts);
        let mut covered = Covered::default();
        mounts.retain(|mount| {
            let fresh = !covered.has(mount);
            covered.insert(mount);
            fresh && self.concerns(&mount.point)
        });
        mounts
    }
}

/// The words of a line.
type Words<'t> = Vec<&'t str>;

fn lines(text: &str) -> Vec<Words<'_>> {
    specifications(text).map(|line| line.text.split_whitespace().collect()).collect()
}

/// The lines that only one text has. If several lines match, the last counts, so lines between other lines than before
/// are included.
fn changed<'t>(before: &[Words<'t>], after: &[Words<'t>]) -> Vec<Words<'t>> {
    let [old, new] = [before, after].map(|lines| lines.iter().collect::<HashSet<_>>());
    let kept = |lines: &[Words<'t>]| -> Vec<Words<'t>> {
        lines.iter().filter(|line| old.contains(line) && new.contains(line)).cloned().collect()
    };
    let (one, other) = (kept(before), kept(after));
    let alike = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let at_end = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
    let moved = one.get(alike..one.len().saturating_sub(at_end)).unwrap_or_default();
    old.symmetric_difference(&new).map(|line| (*line).clone()).chain(moved.iter().cloned()).collect()
}

/// The prefixes, without those that begin with another one.
fn shortest(mut prefixes: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    prefixes.sort();
    let mut left: Vec<Vec<u8>> = Vec::new();
    for prefix in prefixes {
        // In sorted order, all that begin with a prefix follow it directly.
        if !left.last().is_some_and(|last| prefix.starts_with(last)) {
            left.push(prefix);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: u32 = libc::S_IFREG | 0o644;
    const BASE: &str = "/.* u:r:file_t:s0\n/usr/bin(/.*)? u:r:bin_t:s0\n/srv(/.*)? u:r:srv_t:s0\n";

    fn added(lines: &str) -> Changed {
        Changed::between(BASE, &format!("{BASE}{lines}")).unwrap()
    }

    fn concerned<const N: usize>(changed: &Changed, paths: [&'static str; N]) -> Vec<&'static str> {
        paths.into_iter().filter(|path| changed.concerns(Path::new(path))).collect()
    }

    #[test]
    fn concerns_the_way_to_what_changed_and_nothing_beside() {
        let changed = added("/srv/web(/.*)? u:r:web_t:s0\n/usr/bin/web -- u:r:web_exec_t:s0\n");
        let paths =
            ["/", "/srv", "/srv/web", "/srv/web/a", "/srv/we", "/srv/other", "/usr", "/usr/lib", "/usr/bin/web"];
        assert_eq!(concerned(&changed, paths), ["/", "/srv", "/srv/web", "/srv/web/a", "/usr", "/usr/bin/web"]);
        assert!(added("# nothing\n").is_empty());
        let anything = added("(?i)/SRV/.* u:r:web_t:s0\n");
        assert_eq!(concerned(&anything, ["/", "/proc/1"]), ["/", "/proc/1"], "an expression that is not understood");
    }

    #[test]
    fn tells_the_label_where_it_is_another_one_than_before() {
        let changed = added("/srv/web(/.*)? u:r:web_t:s0\n/srv/web/same u:r:srv_t:s0\n/srv/web/none <<none>>\n");
        let label = |path: &str| changed.label(Path::new(path), FILE).unwrap();
        assert_eq!(label("/srv/web/a").as_deref(), Some("u:r:web_t:s0"));
        assert_eq!([label("/srv/web/same"), label("/srv/web/none"), label("/srv/a")], [None, None, None]);
        let back = Changed::between(&format!("{BASE}/srv/web -- u:r:web_t:s0\n"), BASE).unwrap();
        assert_eq!(back.label(Path::new("/srv/web"), FILE).unwrap().as_deref(), Some("u:r:srv_t:s0"));
    }

    #[test]
    fn counts_the_order_of_lines() {
        let moved = "/srv(/.*)? u:r:srv_t:s0\n/.* u:r:file_t:s0\n/usr/bin(/.*)? u:r:bin_t:s0\n";
        let changed = Changed::between(BASE, moved).unwrap();
        assert_eq!(changed.label(Path::new("/srv/a"), FILE).unwrap().as_deref(), Some("u:r:file_t:s0"));
    }

    #[test]
    fn looks_once_below_what_may_be_concerned() {
        let mountinfo = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:21 / /proc rw - proc proc rw\n\
            24 22 8:2 / /srv rw - xfs /dev/sdb rw\n25 22 8:2 / /again rw - xfs /dev/sdb rw\n\
            26 22 8:3 / /home rw - ext4 /dev/sdc rw\n27 22 0:30 / /srv/web/far rw - fuse.sshfs host: rw\n";
        let points = |changed: &Changed| -> Vec<String> {
            changed.places(mountinfo).iter().map(|mount| mount.point.display().to_string()).collect()
        };
        assert_eq!(points(&added("/srv/web(/.*)? u:r:web_t:s0\n")), ["/", "/srv"]);
        assert_eq!(points(&added("/.*\\.py u:r:py_t:s0\n")), ["/", "/srv", "/home"]);
    }
}
