//! A program's build.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::sources::sources;
use crate::{
    Error,
    error::Context,
    place::Place,
    workload::{Operation, Prepared},
};

/// With the one that warms up, Flask's five runs of which the first does not count.
pub(super) const SAMPLES: u32 = 4;

/// Where programs are looked for.
const PATH: &str = "/usr/bin:/bin";

pub(super) fn make(place: &Place) -> Prepared {
    for program in ["make", "gcc", "as", "ld"] {
        if !PATH.split(':').any(|folder| Path::new(folder).join(program).exists()) {
            return Err(Error::Unavailable(format!(
                "there is no {program} in {PATH}: install the packages gcc and make, or leave out make"
            )));
        }
    }
    for source in sources() {
        let path = place.dir.join(source.name);
        fs::write(&path, source.text).context(format!("write {}", path.display()))?;
    }
    Ok(Box::new(Make { folder: place.dir.clone() }))
}

struct Make {
    folder: PathBuf,
}

impl Operation for Make {
    /// Removes the objects, and what is made of them.
    fn before(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == "program" || Path::new(&name).extension().is_some_and(|ending| ending == "o") {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn reach(&self) -> u32 {
        1
    }

    fn leaves_work(&self) -> bool {
        true
    }

    fn warm_ups(&self, _: usize) -> usize {
        1
    }

    fn run(&mut self) -> io::Result<()> {
        let mut command = Command::new("make");
        command.arg("-s").current_dir(&self.folder).stdin(Stdio::null()).env_clear();
        // The compiler's temporary files lie beside the sources: on the file system that is measured.
        command.env("PATH", PATH).env("TMPDIR", &self.folder).env("LC_ALL", "C");
        let output = command.output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
        Err(io::Error::other(format!("make: {}: {first}", output.status)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::place::Network;

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
    }

    #[test]
    fn reports_what_make_says() {
        let folder = tempfile::tempdir().unwrap();
        let error = Make { folder: folder.path().to_owned() }.run().unwrap_err().to_string();
        assert!(error.contains("make: ") && error.contains("No targets"), "{error}");
    }
}
