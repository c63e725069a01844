//! Contexts of units, in the map in which programs look them up.

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
    /// Becomes readable when a unit file has changed.
    pub fn units_changed(&self) -> Option<BorrowedFd<'_>> {
        self.units.wakes()
    }

    /// Puts what unit files say in force if they have changed, and reports what is new. `came`: whether
    /// [`Self::units_changed`] is readable.
    pub fn follow_units(&mut self, came: bool) {
        if let Some(table) = self.units.changed(came) {
            self.put_units(table);
        }
    }

    /// Puts in force what unit files say now. Returns the units with a context, and why some cannot have theirs.
    pub fn look_at_units(&mut self) -> &[Unit] {
        let table = self.units.read();
        self.put_units(table);
        &self.known_units
    }

    fn put_units(&mut self, table: Table) {
        let Table { units, messages } = table;
        for failure in &messages {
            // A problem that lasts is reported once.
            if !self.units_reported.contains(failure) {
                warn!("units: {failure}");
            }
        }
        self.units_reported = messages;
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
            // If there is no room, the start of this unit is noticed later.
            if self.maps.units.update(bytes_of(&key), bytes_of(&entry), MapFlags::ANY).is_ok() {
                keys.push(key);
            }
        }
        // The entries come first, and then the programs look them up.
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

    /// Units that were confined before, and that have no context themselves or by their template.
    fn units_seen_only(&self, known: &[Unit]) -> Vec<Name> {
        let has = |name: &Name| known.iter().any(|unit| unit.name == name.to_string());
        let seen = self.units_seen().into_iter().filter_map(|name| name.parse::<Name>().ok());
        seen.filter(|name| !has(name) && !name.template().is_some_and(|template| has(&template))).collect()
    }

    /// The map's entry for a unit, and the reason if it has no context.
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
            warn!(%cause, "{name} runs without the context that {source} names: {cause}");
        }
        Some(cause) => error!(%cause, "{name} cannot start: {source} names a context that is not valid: {cause}"),
        None if context.is_empty() => {}
        None => info!("{name} is {context} ({source}), from its next start"),
    }
}
