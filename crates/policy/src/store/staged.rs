//! Files that are prepared beside those that they replace, and put in place together.

use std::{
    collections::BTreeSet,
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::{Builder, NamedTempFile, TempPath};

use super::StoreError;

/// Changes of files. If this is dropped, the files stay as they are.
#[derive(Debug, Default)]
pub struct Staged {
    writes: Vec<(NamedTempFile, PathBuf)>,
    removals: Vec<PathBuf>,
    /// The file that takes effect at the next start. It is replaced last, when nothing else can fail any more.
    last: Option<(NamedTempFile, PathBuf)>,
}

/// A file that was changed, and what undoes that.
struct Done {
    path: PathBuf,
    /// The file as it was; `None`: there was none.
    before: Option<TempPath>,
}

impl Staged {
    /// Prepares new content. All of it is on the disk afterwards.
    pub(super) fn write(&mut self, path: PathBuf, content: &[u8]) -> Result<(), StoreError> {
        let fresh = prepare(&path, content)?;
        self.writes.push((fresh, path));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: PathBuf) {
        self.removals.push(path);
    }

    pub(super) fn write_last(&mut self, path: PathBuf, content: &[u8]) -> Result<(), StoreError> {
        // A link stays a link.
        let path = fs::canonicalize(&path).unwrap_or(path);
        self.last = Some((prepare(&path, content)?, path));
        Ok(())
    }

    /// Puts all files in place. If this fails, everything is as before.
    pub fn commit(self) -> Result<(), StoreError> {
        let Self { writes, removals, last } = self;
        let folders: BTreeSet<PathBuf> =
            writes.iter().chain(&last).map(|(_, path)| path).chain(&removals).filter_map(|path| folder(path)).collect();
        let mut done = Vec::new();
        let changed = put(writes, &removals, &mut done).and_then(|()| {
            // Otherwise a crash might leave the policy without its sources.
            folders.iter().try_for_each(|folder| sync(folder))?;
            last.map_or(Ok(()), |(fresh, path)| persist(fresh, &path))
        });
        if let Err(cause) = changed {
            done.into_iter().rev().for_each(undo);
            return Err(cause);
        }
        folders.iter().try_for_each(|folder| sync(folder))
    }
}

fn put(writes: Vec<(NamedTempFile, PathBuf)>, removals: &[PathBuf], done: &mut Vec<Done>) -> Result<(), StoreError> {
    for (fresh, path) in writes {
        let before = keep(&path)?;
        persist(fresh, &path)?;
        done.push(Done { path, before });
    }
    for path in removals {
        let before = keep(path)?;
        fs::remove_file(path).map_err(error("remove", path))?;
        done.push(Done { path: path.clone(), before });
    }
    Ok(())
}

/// Restores a file. A failure here has failed before, and was reported.
fn undo(done: Done) {
    let Done { path, before } = done;
    let _ = match before {
        Some(before) => before.persist(&path).map_err(|failure| failure.error),
        None => fs::remove_file(&path),
    };
}

/// Makes a second name for a file. It is removed when it is not needed.
fn keep(path: &Path) -> Result<Option<TempPath>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    let folder = folder(path).unwrap_or_default();
    let link = Builder::new().prefix(".").make_in(folder, |name| fs::hard_link(path, name));
    link.map(|link| Some(link.into_temp_path())).map_err(error("keep", path))
}

/// A file beside `path` that everybody may read.
fn prepare(path: &Path, content: &[u8]) -> Result<NamedTempFile, StoreError> {
    let folder = folder(path).unwrap_or_default();
    fs::create_dir_all(&folder).map_err(error("make", &folder))?;
    let fresh = Builder::new().prefix(".").permissions(Permissions::from_mode(0o644)).tempfile_in(&folder);
    let mut fresh = fresh.map_err(error("write", path))?;
    fresh.write_all(content).and_then(|()| fresh.as_file().sync_all()).map_err(error("write", path))?;
    Ok(fresh)
}

fn persist(fresh: NamedTempFile, path: &Path) -> Result<(), StoreError> {
    fresh.persist(path).map(drop).map_err(|failure| error("write", path)(failure.error))
}

fn sync(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(error("write", folder))
}

fn folder(path: &Path) -> Option<PathBuf> {
    path.parent().map(Path::to_owned)
}

fn error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |cause| StoreError::Io { what, path, cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files `old`, `gone` and `policy`.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["old", "gone", "policy"] {
            fs::write(folder.path().join(name), "before").unwrap();
        }
        folder
    }

    fn staged(folder: &Path) -> Staged {
        let mut staged = Staged::default();
        staged.write(folder.join("old"), b"after").unwrap();
        staged.write(folder.join("new.d/new"), b"after").unwrap();
        staged.remove(folder.join("gone"));
        staged.write_last(folder.join("policy"), b"after").unwrap();
        staged
    }

    /// Files and what they hold, in the folder and in `new.d`.
    fn held(folder: &Path) -> Vec<String> {
        let list = |folder: &Path| -> Vec<PathBuf> {
            fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
        };
        let files = list(folder).into_iter().chain(list(&folder.join("new.d"))).filter(|path| path.is_file());
        let tell = |path: PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            format!("{name} {}", fs::read_to_string(&path).unwrap())
        };
        let mut held: Vec<String> = files.map(tell).collect();
        held.sort();
        held
    }

    #[test]
    fn puts_everything_in_its_place_and_leaves_nothing_beside() {
        let folder = folder();
        staged(folder.path()).commit().unwrap();
        assert_eq!(held(folder.path()), ["new after", "old after", "policy after"]);
    }

    #[test]
    fn leaves_all_as_it_was_unless_it_is_put_in_place() {
        let folder = folder();
        let staged = staged(folder.path());
        assert_eq!(fs::read_to_string(folder.path().join("old")).unwrap(), "before");
        drop(staged);
        assert_eq!(held(folder.path()), ["gone before", "old before", "policy before"]);
    }

    #[test]
    fn puts_all_back_where_one_cannot_be_put_in_place() {
        let folder = folder();
        let mut staged = staged(folder.path());
        // The last one: a directory, which no file takes the place of.
        let directory = folder.path().join("directory");
        fs::create_dir_all(directory.join("with")).unwrap();
        staged.last = staged.last.map(|(fresh, _)| (fresh, directory.clone()));
        let error = staged.commit().unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot write {}", directory.display())), "{error}");
        assert_eq!(held(folder.path()), ["gone before", "old before", "policy before"]);
        // One in the middle: what is to go is not there.
        let mut staged = super::tests::staged(folder.path());
        staged.remove(folder.path().join("nowhere"));
        staged.commit().unwrap_err();
        assert_eq!(held(folder.path()), ["gone before", "old before", "policy before"]);
    }
}
