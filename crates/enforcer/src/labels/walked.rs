//! Which file systems were walked, so that nobody looks through all places of the map `superblocks` for them.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The devices of file systems that were walked; `None`: nobody has looked yet what an earlier daemon has walked. The
/// daemon alone walks, but programs forget a file system that is mounted no more.
#[derive(Debug, Clone, Default)]
pub struct Walked(Arc<Mutex<Option<BTreeSet<u32>>>>);

impl Walked {
    fn known(&self) -> MutexGuard<'_, Option<BTreeSet<u32>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file system, after it was marked in the map.
    pub fn add(&self, device: u32) {
        self.known().as_mut().map(|known| known.insert(device));
    }

    /// What `find` finds of each of them; nothing of one that is mounted no more, which is removed. The first call searches
    /// for them. Nothing is added meanwhile. An error is returned, and changes nothing.
    pub fn each<T>(
        &self,
        search: impl FnOnce() -> io::Result<BTreeSet<u32>>,
        mut find: impl FnMut(u32) -> io::Result<Option<T>>,
    ) -> io::Result<Vec<(u32, T)>> {
        let mut known = self.known();
        let devices = match &*known {
            Some(devices) => devices.clone(),
            None => search()?,
        };
        let mut found = Vec::with_capacity(devices.len());
        for device in devices {
            if let Some(of) = find(device)? {
                found.push((device, of));
            }
        }
        *known = Some(found.iter().map(|(device, _)| *device).collect());
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never() -> io::Result<BTreeSet<u32>> {
        panic!("it has searched already")
    }

    fn busy<T>() -> io::Result<T> {
        Err(io::Error::other("busy"))
    }

    #[test]
    fn searches_once_and_then_knows_what_is_added_and_what_is_gone() {
        let walked = Walked::default();
        walked.add(7); // in the map, which is searched later
        let all = |device| Ok(Some(device * 10));
        assert_eq!(walked.each(|| Ok(BTreeSet::from([7, 3])), all).unwrap(), [(3, 30), (7, 70)]);
        walked.clone().add(5);
        assert_eq!(walked.each(never, |device| Ok((device != 3).then_some(()))).unwrap(), [(5, ()), (7, ())]);
        assert_eq!(walked.each(never, all).unwrap(), [(5, 50), (7, 70)]);
    }

    #[test]
    fn changes_nothing_after_an_error() {
        let walked = Walked::default();
        assert!(walked.each(busy, |_| Ok(Some(()))).is_err());
        assert_eq!(walked.each(|| Ok(BTreeSet::from([1])), |_| Ok(Some(()))).unwrap(), [(1, ())]);
        assert!(walked.each(never, |_| busy::<Option<()>>()).is_err());
        assert_eq!(walked.each(never, |_| Ok(Some(()))).unwrap(), [(1, ())]);
    }
}
