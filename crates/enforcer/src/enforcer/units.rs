//! Contexts of units, in the map that programs look them up in.

use std::os::fd::BorrowedFd;

use libbpf_rs::{MapCore, MapFlags};
use tollgate_abi::{
    bytes_of,
    enforcer::{TG_UNIT_SEEN, TG_UNIT_UNKNOWN, tg_unit},
};
use tollgate_client::units::Unit;
use tracing::{error, info, warn};

use super::{Enforcer, maps::retain};
use crate::units::{Setting, Table, names::Name, unit};

impl Enforcer {
    /// What can be read from when a unit file has changed.
    pub fn units_changed(&self) -> Option<BorrowedFd<'_>> {
        self.units.wakes()
    }

    /// Puts what unit files say in force, if they have changed, and tells what is new of it.
    pub fn follow_units(&mut self) {
        if let Some(table) = self.units.changed() {
            self.put_units(table);
        }
    }

    /// Puts what unit files say now in force: who has one of these contexts, and who cannot.
    pub fn look_at_units(&mut self) -> &[Unit] {
        let table = self.units.read();
        self.put_units(table);
        &self.known_units
    }

    fn put_units(&mut self, table: Table) {
        let Table { units, told } = table;
        for failure in &told {
            // What lasts is told once.
            if !self.units_told.contains(failure) {
                warn!("units: {failure}");
            }
        }
        self.units_told = told;
        let mut keys = Vec::new();
        let mut known = Vec::new();
        for (name, setting) in units {
            let (key, flags) = name.key();
            let (entry, problem) = self.entry(&setting, flags);
            let put = self.maps.units.update(bytes_of(&key), bytes_of(&entry), MapFlags::ANY);
            let problem = problem.or(put.err().map(|cause| format!("no room: {cause}")));
            keys.push(key);
            known.push(unit(&name, setting, problem));
        }
        for name in self.units_seen_only(&known) {
            let (key, flags) = name.key();
            let entry = tg_unit { sid: 0, flags: flags | TG_UNIT_SEEN };
            // Without room what begins there is seen later.
            if self.maps.units.update(bytes_of(&key), bytes_of(&entry), MapFlags::ANY).is_ok() {
                keys.push(key);
            }
        }
        // First there are entries, and then programs look.
        let count = keys.len() as u32;
        if count > 0 {
            self.state.set_units(count);
        }
        retain(&self.maps.units, &keys.iter().map(bytes_of).collect());
        self.state.set_units(count);
        for unit in known.iter().filter(|unit| !self.known_units.contains(unit)) {
            tell(unit);
        }
        self.known_units = known;
    }

    /// Units that were confined before, and have no context of their own or their template's.
    fn units_seen_only(&self, known: &[Unit]) -> Vec<Name> {
        let has = |name: &Name| known.iter().any(|unit| unit.name == name.to_string());
        let seen = self.units_seen().into_iter().filter_map(|name| name.parse::<Name>().ok());
        seen.filter(|name| !has(name) && !name.template().is_some_and(|template| has(&template))).collect()
    }

    /// What the map says of a unit, and why it has no context.
    fn entry(&mut self, setting: &Setting, flags: u32) -> (tg_unit, Option<String>) {
        if setting.context.is_empty() {
            return (tg_unit { sid: 0, flags }, None);
        }
        match self.intern(&setting.context) {
            Ok(sid) => (tg_unit { sid, flags }, None),
            Err(cause) => {
                let unknown = if setting.ignorable { 0 } else { TG_UNIT_UNKNOWN };
                (tg_unit { sid: 0, flags: flags | unknown }, Some(cause.to_string()))
            }
        }
    }
}

fn tell(unit: &Unit) {
    let Unit { name, context, source, problem, ignorable } = unit;
    let source = source.display();
    match problem {
        Some(cause) if *ignorable => {
            warn!(unit = %name, %cause, "{name} runs without the context that {source} gives it: {cause}");
        }
        Some(cause) => {
            error!(unit = %name, %cause, "{name} cannot start: {source} gives it a context that cannot be: {cause}");
        }
        None if context.is_empty() => {}
        None => info!(unit = %name, %context, "{name} is {context} ({source}), from its next start on"),
    }
}
