//! The file of the guard's database, and the signature that a machine may demand of it.

use std::{
    fs::{self, File, Permissions},
    io::{ErrorKind, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::Args;
use nix::fcntl::{Flock, FlockArg};
use tempfile::NamedTempFile;
use tollgate_enforcer::{
    daemon::fleet,
    guard::{FILE, Guard},
    requirements,
};
use tollgate_guard::{BinaryError, Database};
use tollgate_signing::Trusted;

use crate::signed;

/// Which database a command is about.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The file of the database
    #[arg(long, value_name = "FILE", default_value = FILE)]
    pub(super) database: PathBuf,
}

impl Options {
    /// Reads the database; a machine that has none yet has an empty one.
    pub(super) fn read(&self) -> anyhow::Result<Database> {
        match fs::read(&self.database) {
            Ok(bytes) => of_bytes(&self.database, &bytes),
            Err(cause) if cause.kind() == ErrorKind::NotFound && self.is_own() => Ok(Database::default()),
            Err(cause) => Err(cause).with_context(|| format!("cannot read {}", self.database.display())),
        }
    }

    /// Changes the database. That of the machine is put in force, too, if the guard runs.
    pub(super) fn change(&self, change: impl FnOnce(&mut Database) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let _lock = self.lock()?;
        let mut database = self.read()?;
        change(&mut database)?;
        self.replace(&database)
    }

    /// Keeps other commands and the daemon from changing the machine's database meanwhile.
    pub(super) fn lock(&self) -> anyhow::Result<Option<Flock<File>>> {
        let Some(folder) = Path::new(FILE).parent().filter(|_| self.is_own()) else { return Ok(None) };
        requirements::root()?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let folder = File::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
        let locked = Flock::lock(folder, FlockArg::LockExclusive).map_err(|(_, cause)| cause);
        Ok(Some(locked.context("cannot lock the folder of the database")?))
    }

    /// Replaces the database. That of the machine is put in force, too, if the guard runs.
    pub(super) fn replace(&self, database: &Database) -> anyhow::Result<()> {
        if self.is_own() {
            if let Some(trusted) = Trusted::of_machine(Path::new(Trusted::FILE))? {
                bail!(
                    "this machine demands signatures ({}): save a copy (`tollgate guard save FILE`), change it \
                     (`--database FILE`), sign it (`tollgate key sign`), and load it (`tollgate guard load FILE`)",
                    trusted.path().display()
                );
            }
            put_in_force(database)?;
        }
        write(&self.database, &database.to_bytes())
    }

    fn is_own(&self) -> bool {
        self.database == Path::new(FILE)
    }
}

/// Puts a database in force, if the guard runs. Returns whether it does.
pub(super) fn put_in_force(database: &Database) -> anyhow::Result<bool> {
    let of_fleet = fleet::first(Path::new(fleet::SETTINGS), Path::new(fleet::KEPT));
    if of_fleet.is_some_and(|files| files.beside.guard.is_some()) {
        bail!(
            "the fleet of this machine says what the guard's database is: save a copy (`tollgate guard save FILE`), change \
             it (`--database FILE`), and publish it (`tollgate fleet publish --guard FILE`)"
        );
    }
    let Some(guard) = Guard::adopt()? else { return Ok(false) };
    guard.put_in_force(database)?;
    Ok(true)
}

/// The database with these bytes.
pub(super) fn of_bytes(path: &Path, bytes: &[u8]) -> anyhow::Result<Database> {
    Database::from_bytes(bytes).with_context(|| format!("{} cannot be used", path.display()))
}

/// The database of a file that may be put in force: signed, if this machine demands it. Text is taken, too.
pub(super) fn accepted(path: &Path) -> anyhow::Result<Database> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    signed::check(path, &bytes)?;
    match (Database::from_bytes(&bytes), str::from_utf8(&bytes)) {
        (Err(BinaryError::NotDatabase), Ok(text)) => {
            Database::parse(text).with_context(|| format!("{} cannot be used", path.display()))
        }
        _ => of_bytes(path, &bytes),
    }
}

/// Writes a file, whole or not at all.
pub(super) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path == Path::new(FILE) {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let written = NamedTempFile::new_in(folder).and_then(|mut fresh| {
        fresh.write_all(bytes)?;
        fresh.as_file().set_permissions(Permissions::from_mode(0o644))?;
        fresh.as_file().sync_all()?;
        fresh.persist(&target)?;
        // Its name must be on the disk, too.
        File::open(folder)?.sync_all()
    });
    written.with_context(|| {
        format!("cannot write {}; name a file in a folder that is there and that you may write", path.display())
    })
}
