//! Names that differ each time a program runs: temporary files, and files with numbers. A rule of the exact path would deny
//! the next one.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_abi::guard::TG_GUARD_RANDOM;

use crate::{
    call::Place,
    hash::{split, stem},
    name::Name,
};

/// A stem this short stands for too much: `/etc/??????` is also /etc/passwd.
const SHORTEST: usize = 3;
/// Below folders of these, a program keeps what is its own, such as jobs.
const OWN: [&str; 3] = ["/run/", "/var/cache/", "/var/spool/"];
/// Not below these folders, though: what is there becomes privilege, or belongs to others.
const TRUSTED: [&str; 6] = ["cron", "dbus", "sudo", "systemd", "udev", "user"];

/// Names that change, as the places of rules show.
#[derive(Debug)]
pub(crate) struct Changing {
    /// Paths without the end that mkstemp(3) makes.
    stems: BTreeSet<Vec<u8>>,
    /// Directories in which names differ by numbers.
    numbered: BTreeSet<Vec<u8>>,
}

impl Changing {
    pub(crate) fn of<'a>(places: impl IntoIterator<Item = &'a Place>) -> Self {
        let (mut stems, mut numbered) = (BTreeSet::new(), BTreeSet::new());
        let (mut ends, mut shapes) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::<_, BTreeSet<_>>::new());
        for place in places {
            match place {
                Place::Any => {}
                Place::Stem(path) => drop(stems.insert(path.as_bytes().to_vec())),
                Place::Below(path) => drop(numbered.insert(path.as_bytes().to_vec())),
                Place::Is(path) => {
                    if let Some((stem, end)) = temporary(path.as_bytes()) {
                        ends.entry(stem).or_default().insert(end);
                    }
                    for (folder, name) in components(path.as_bytes()).filter(|(_, name)| has_number(name)) {
                        shapes.entry((folder, shape(name))).or_default().insert(name);
                    }
                }
            }
        }
        let several = |names: &BTreeSet<&[u8]>| names.len() > 1;
        let random = |ends: &BTreeSet<&[u8]>| several(ends) && ends.iter().any(|end| is_random(end));
        stems.extend(ends.into_iter().filter(|(_, ends)| random(ends)).map(|(stem, _)| stem.to_vec()));
        let differ = shapes.into_iter().filter(|(_, names)| several(names));
        numbered.extend(differ.map(|((folder, _), _)| folder.to_vec()));
        numbered.retain(|folder| is_own(folder));
        Self { stems, numbered }
    }

    /// The place that a rule has instead of this path, if a name in it changes.
    pub(crate) fn place(&self, path: &Name) -> Option<Place> {
        let is_numbered = |(folder, name): &(&[u8], &[u8])| has_number(name) && self.numbered.contains(*folder);
        if let Some((folder, _)) = components(path.as_bytes()).find(is_numbered) {
            return Name::of(folder).ok().map(Place::Below);
        }
        let (stem, _) = temporary(path.as_bytes()).filter(|(stem, _)| self.stems.contains(*stem))?;
        Name::of(stem).ok().map(Place::Stem)
    }
}

/// The stem and the end of a path that may be a temporary file's.
fn temporary(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let stem = stem(path).filter(|stem| split(stem).1.len() >= SHORTEST)?;
    let end = &path[stem.len()..];
    end.iter().all(u8::is_ascii_alphanumeric).then_some((stem, end))
}

/// Whether the end of a name is no word and no number. Of 62 letters and digits, six at random are one of 300 times.
fn is_random(end: &[u8]) -> bool {
    debug_assert_eq!(end.len(), TG_GUARD_RANDOM as usize, "what mkstemp(3) makes");
    let kinds = [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit];
    kinds.into_iter().filter(|is_kind| end.iter().any(is_kind)).count() > 1
}

/// Each component of a path, with the directory that it is in.
fn components(path: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let ends = (1..=path.len()).filter(|end| path.get(*end).is_none_or(|byte| *byte == b'/'));
    ends.map(|end| split(&path[..end]))
}

fn has_number(name: &[u8]) -> bool {
    name.iter().any(u8::is_ascii_digit)
}

/// A name with one digit instead of each number.
fn shape(name: &[u8]) -> Vec<u8> {
    let mut shape: Vec<u8> = name.iter().map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte }).collect();
    shape.dedup_by(|next, last| *next == b'0' && *last == b'0');
    shape
}

/// Whether a directory is a program's own, so that it may change all that is there.
fn is_own(folder: &[u8]) -> bool {
    let below = OWN.iter().find_map(|own| folder.strip_prefix(own.as_bytes()));
    let program = below.and_then(|below| below.split(|byte| *byte == b'/').next());
    program.is_some_and(|name| !name.is_empty() && !TRUSTED.iter().any(|trusted| trusted.as_bytes() == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of each of these paths, seen together.
    fn learnt(paths: &[&str]) -> Vec<String> {
        let places: Vec<Place> = paths.iter().map(|path| path.parse().unwrap()).collect();
        let changing = Changing::of(&places);
        let instead = |place: &Place| match place {
            Place::Is(path) => changing.place(path),
            _ => None,
        };
        places.iter().map(|place| instead(place).unwrap_or_else(|| place.clone()).to_string()).collect()
    }

    #[test]
    fn leaves_a_beginning_of_temporary_names() {
        assert_eq!(
            learnt(&["/run/mount/utab.fWlIU9", "/run/mount/utab.lTnKkQ", "/run/mount/utab.lock", "/run/mount/utab"]),
            ["/run/mount/utab.??????", "/run/mount/utab.??????", "/run/mount/utab.lock", "/run/mount/utab"]
        );
        assert_eq!(learnt(&["/etc/sed??????", "/etc/sedlowers"])[1], "/etc/sed??????", "it is known already");
    }

    #[test]
    fn leaves_the_folder_of_a_program_of_names_with_numbers() {
        let folder = "/var/spool/lpd/lp/";
        assert_eq!(
            learnt(&["/var/spool/lpd/lp/dfA355host", "/var/spool/lpd/lp/dfA47host", "/var/spool/lpd/lp/log"]),
            [folder, folder, "/var/spool/lpd/lp/log"]
        );
        assert_eq!(learnt(&["/var/spool/lpd/lp/", "/var/spool/lpd/lp/hfA3"])[1], folder, "it is known already");
        assert_eq!(learnt(&["/run/x/job1/data", "/run/x/job2/data"]), ["/run/x/", "/run/x/"]);
    }

    #[test]
    fn keeps_what_was_seen_once_or_differs_by_words() {
        for paths in [
            &["/run/mount/utab.fWlIU9"][..],
            &["/run/lprng/lpd.515"],
            &["/srv/my-passwd", "/srv/my-shadow"],
            &["/srv/abc111111", "/srv/abc222222"],
        ] {
            assert_eq!(learnt(paths), paths);
        }
    }

    #[test]
    fn keeps_what_would_stand_for_programs_or_for_the_files_of_others() {
        for paths in [
            &["/etc/Ab3dEf", "/etc/Zk9Qwe"][..],
            &["/etc/abAb3dEf", "/etc/abZk9Qwe"],
            &["/usr/bin/python3", "/usr/bin/python4"],
            &["/etc/passwd.812", "/etc/passwd.99"],
            &["/tmp/a1", "/tmp/a2"],
            &["/run/a1", "/run/a2"],
            &["/var/spool/a1", "/var/spool/a2"],
            &["/run/systemd/system/a1", "/run/systemd/system/a2"],
            &["/var/spool/cron/crontabs/user1", "/var/spool/cron/crontabs/user2"],
            &["/runner/x/a1", "/runner/x/a2"],
        ] {
            assert_eq!(learnt(paths), paths);
        }
    }
}
