//! A tree that rsync copies.

use std::fs;

use super::{Repeated, remove, require};
use crate::{error::Context, place::Place, workload::Prepared};

const DIRECTORIES: u32 = 16;
const FILES: u32 = 10;
const BYTES: usize = 4096;

pub(super) fn rsync(place: &Place) -> Prepared {
    require("rsync", &["rsync"], "the package rsync")?;
    let source = place.dir.join("source");
    for directory in 0..DIRECTORIES {
        let path = source.join(directory.to_string());
        fs::create_dir_all(&path).context(format!("make {}", path.display()))?;
        for file in 0..FILES {
            let path = path.join(file.to_string());
            // All files differ, and rsync has no modification time by which to skip one.
            let text = format!("{directory} {file} ").repeat(BYTES);
            fs::write(&path, &text[..BYTES]).context(format!("write {}", path.display()))?;
        }
    }
    Ok(Box::new(Repeated {
        folder: place.dir.clone(),
        words: &["rsync", "-a", "source/", "copy"],
        clean: |folder| remove(&folder.join("copy")),
        given: vec![source],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Network;

    #[test]
    fn copies_the_whole_tree_each_time_and_leaves_nothing_or_names_the_package() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path().to_owned(), Network::Loopback, folder.path().to_owned());
        let mut operation = match rsync(&place) {
            Ok(operation) => operation,
            Err(error) => return assert!(error.to_string().contains("install the package rsync"), "{error}"),
        };
        for _ in 0..2 {
            operation.before().unwrap();
            assert!(!folder.path().join("copy").exists());
            operation.run().unwrap();
            let copied = |d: u32| fs::read_dir(folder.path().join(format!("copy/{d}"))).unwrap().count() as u32;
            assert_eq!((0..DIRECTORIES).map(copied).sum::<u32>(), DIRECTORIES * FILES);
        }
        drop(operation);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
