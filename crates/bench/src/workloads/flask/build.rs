//! A program's build.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    super::commands::{Repeated, require},
    sources::sources,
};
use crate::{error::Context, place::Place, workload::Prepared};

/// With the warm-up run, these are Flask's five runs, of which the first does not count.
pub(super) const SAMPLES: u32 = 4;

pub(super) fn make(place: &Place) -> Prepared {
    require("make", &["make", "gcc", "as", "ld"], "the packages gcc and make")?;
    let mut given = Vec::new();
    for source in sources() {
        let path = place.dir.join(source.name);
        fs::write(&path, source.text).context(format!("write {}", path.display()))?;
        given.push(path);
    }
    Ok(Box::new(build(place.dir.clone(), given)))
}

fn build(folder: PathBuf, given: Vec<PathBuf>) -> Repeated {
    Repeated { folder, words: &["make", "-s"], clean, given }
}

/// Removes the objects and the program.
fn clean(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "program" || Path::new(&name).extension().is_some_and(|ending| ending == "o") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{place::Network, workload::Operation};

    fn names(folder: &Path) -> BTreeSet<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn builds_the_whole_program_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("c");
        fs::create_dir(&inside).unwrap();
        let place = Place::new(inside.clone(), Network::Loopback, folder.path().to_owned());
        let mut operation = make(&place).unwrap();
        let sources = names(&inside);
        for _ in 0..2 {
            operation.before().unwrap();
            assert_eq!(names(&inside), sources);
            operation.run().unwrap();
            let made: BTreeSet<String> = names(&inside).difference(&sources).cloned().collect();
            // 20 objects and the program, and nothing temporary.
            assert_eq!(made.len(), 21, "{made:?}");
        }
        drop(operation);
        assert!(names(&inside).is_empty(), "{:?}", names(&inside));
    }

    #[test]
    fn reports_what_make_says() {
        let folder = tempfile::tempdir().unwrap();
        let error = build(folder.path().to_owned(), Vec::new()).run().unwrap_err().to_string();
        assert!(error.contains("make: ") && error.contains("No targets"), "{error}");
    }
}
