//! A shell script.

use std::fs;

use super::{Repeated, remove, require};
use crate::{error::Context, place::Place, workload::Prepared};

const TEXT: &str = include_str!("script.sh");
const NAME: &str = "script.sh";
/// The programs that it runs.
const PROGRAMS: &[&str] =
    &["sh", "mkdir", "cp", "grep", "sed", "cat", "chmod", "mv", "ls", "sort", "uniq", "tail", "rm"];

pub(super) fn script(place: &Place) -> Prepared {
    require("script", PROGRAMS, "the package busybox or coreutils, grep and sed")?;
    let path = place.dir.join(NAME);
    fs::write(&path, TEXT).context(format!("write {}", path.display()))?;
    Ok(Box::new(Repeated {
        folder: place.dir.clone(),
        words: &["sh", NAME],
        // A run that ends normally leaves nothing.
        clean: |folder| remove(&folder.join("out")),
        given: vec![path],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Network;

    #[test]
    fn runs_again_and_again_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path().to_owned(), Network::Loopback, folder.path().to_owned());
        let mut operation = script(&place).unwrap();
        fs::create_dir(folder.path().join("out")).unwrap();
        operation.run().unwrap_err();
        for _ in 0..2 {
            operation.before().unwrap();
            operation.run().unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the script alone is left");
        }
        drop(operation);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn asks_for_each_program_that_the_script_runs() {
        let words: Vec<&str> = TEXT.split([' ', '\n', '|']).collect();
        for program in PROGRAMS.iter().filter(|program| **program != "sh") {
            assert!(words.contains(program), "{program} is not in the script");
        }
    }
}
