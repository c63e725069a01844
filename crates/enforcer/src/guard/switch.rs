//! Databases in the kernel's memory, and which of them is in force, with a policy or without one.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Program};
use tollgate_abi::guard::{tg_guard_own, tg_guard_switch};
use tollgate_guard::{Class, Database, Mode, Secret};
use zerocopy::FromBytes;

use super::{Guard, GuardError, table};
use crate::programs::{self, Place, ProgramsError, refused, run};

/// The program that puts a database in force.
const PROGRAM: &str = "guard_switch";
/// The only place of `guard_tables`.
const PLACE: u32 = 0;

/// A database in the kernel's memory.
#[derive(Debug)]
pub struct Loaded {
    table: MapHandle,
    /// Whether daemons that it lacks are guarded.
    daemons: u32,
    /// The words of its digest.
    digest: [u32; 8],
}

impl Guard {
    /// Writes a database into the kernel's memory. It is not in force yet.
    pub fn load(&self, database: &Database) -> Result<Loaded, GuardError> {
        let state = self.state.get();
        // SAFETY: the member lies in the mapping, and was written before any program was attached.
        let secret = Secret(unsafe { (&raw const (*state).secret).read_volatile() });
        let table = table::make(&programs::map(&self.pins, "guard_template")?, database, secret);
        let table = table.map_err(refused("make the table of the guard's database"))?;
        self.forget_gone()?;
        self.register_map(&table)?;
        let daemons = database.default_mode(Class::Daemon) != Mode::Off;
        Ok(Loaded { table, daemons: daemons.into(), digest: database.digest().words() })
    }

    /// The database in force.
    pub fn loaded(&self) -> Result<Loaded, GuardError> {
        let found = self.tables()?.lookup(&PLACE.to_ne_bytes(), MapFlags::ANY);
        let found = found.map_err(refused("find the guard's table"))?.unwrap_or_default();
        let id = u32::from_ne_bytes(found.try_into().unwrap_or_default());
        let table = MapHandle::from_map_id(id).map_err(refused("open the guard's table"))?;
        let state = self.state.get();
        // SAFETY: both members lie in the mapping, and any numbers may be in them.
        let (daemons, digest) =
            unsafe { ((&raw const (*state).daemons).read_volatile(), (&raw const (*state).database).read_volatile()) };
        Ok(Loaded { table, daemons, digest })
    }

    /// Puts a database in force, whole or not at all.
    pub fn put_in_force(&self, database: &Database) -> Result<(), GuardError> {
        self.switch(&self.load(database)?, None)
    }

    /// Likewise, together with a policy: whenever this process is killed, both are in force or neither is.
    pub fn switch(&self, to: &Loaded, policy: Option<Place<'_>>) -> Result<(), GuardError> {
        let (tables, before) = (self.tables()?, self.loaded()?);
        let descriptor = |map: &MapHandle| map.as_fd().as_raw_fd().cast_unsigned();
        let mut wanted = tg_guard_switch {
            tables: descriptor(&tables),
            table: descriptor(&to.table),
            before: descriptor(&before.table),
            daemons: to.daemons,
            database: to.digest,
            ..Default::default()
        };
        if let Some(Place { maps, number, map }) = policy {
            wanted.has_policy = 1;
            (wanted.generations, wanted.place, wanted.generation) = (descriptor(maps), number, descriptor(map));
        }
        let pin = self.pins.inquiry(PROGRAM);
        let failed = |cause: io::Error| refused("put the guard's database in force")(cause.into());
        let program = Program::fd_from_pinned_path(&pin);
        let program = program.map_err(|cause| ProgramsError::Pins { path: pin, cause: io::Error::other(cause) })?;
        run(program.as_fd(), &mut wanted).map_err(failed)?;
        match wanted.result {
            0 => Ok(()),
            error => Err(failed(io::Error::from_raw_os_error(-error)).into()),
        }
    }

    /// Forgets tables that are no more: `guard_own` has room for some only.
    fn forget_gone(&self) -> Result<(), ProgramsError> {
        let own = programs::map(&self.pins, "guard_own")?;
        let is_gone = |key: &Vec<u8>| {
            let own = tg_guard_own::read_from_bytes(key).ok().filter(|own| own.is_program == 0);
            own.is_some_and(|own| MapHandle::from_map_id(own.id).is_err())
        };
        for key in own.keys().filter(is_gone) {
            own.delete(&key).map_err(refused("forget a table of the guard's"))?;
        }
        Ok(())
    }

    fn tables(&self) -> Result<MapHandle, ProgramsError> {
        programs::map(&self.pins, "guard_tables")
    }
}
