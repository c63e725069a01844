//! What the policy in force says about a service: its domain, and the owners of its ports and files.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use tollgate_enforcer::labels::file_contexts::{FileContexts, specifications};
use tollgate_policy::{
    built::Built,
    cil,
    model::PortContext,
    server::{Ask, SecurityServer},
};
use tollgate_service::{
    block::Found,
    grants::Grants,
    listening::{Port, Protocol},
    machine,
    program::Program,
    service::{Place, Service},
    words::Domain,
};

/// The attribute by which the promises for confined domains hold for a domain, without their rules.
const PROMISED: &str = "promised";
/// The attribute of domains that may do everything.
const UNCONFINED: &str = "unconfined_domain";
/// Files of these types belong to no single service.
const COMMON: [&str; 8] = ["file_t", "bin_t", "shell_exec_t", "lib_t", "etc_t", "var_t", "log_t", "run_t"];
/// The initial SID of the machine's processes.
const MACHINE: &str = "init";

/// The policy in force.
pub(super) struct Known<'b> {
    built: &'b Built,
    server: SecurityServer<'b>,
    files: FileContexts,
}

impl<'b> Known<'b> {
    pub(super) fn of(built: &'b Built, name: &str) -> anyhow::Result<Self> {
        let server = built.server()?;
        if server.names().attribute(PROMISED).is_none() {
            bail!(
                "{name} has no attribute `{PROMISED}`: blocks are written for Tollgate's own policy \
                 (/usr/share/tollgate/policy), which has to be in force"
            );
        }
        let files = FileContexts::new(&built.file_contexts)?;
        Ok(Self { built, server, files })
    }

    /// Whether a block of that name would be a duplicate, because types have it.
    pub(super) fn has(&self, name: &str) -> bool {
        let prefix = format!("{name}.");
        self.built.policy.types.iter().any(|kind| kind.name == name || kind.name.starts_with(&prefix))
    }

    /// The domain that the policy has for a service, by its program or by the program that this executes.
    pub(super) fn domain(&mut self, service: &Service) -> anyhow::Result<Option<String>> {
        let main = service.unit().and_then(|unit| unit.main).and_then(machine::program_of);
        let own = match &service.program {
            Program::Own(program) => Some(program.clone()),
            Program::Shared { .. } => None,
        };
        for program in [own, main].into_iter().flatten() {
            if let Some(domain) = self.entered_by(&program)? {
                return Ok(Some(domain));
            }
        }
        Ok(None)
    }

    /// The confined domain that the machine's processes enter by executing a program.
    fn entered_by(&mut self, program: &Path) -> anyhow::Result<Option<String>> {
        let Some(file) = self.files.lookup(program, libc::S_IFREG | 0o755)? else { return Ok(None) };
        let policy = &self.built.policy;
        let machine = policy.initial_sids.iter().find(|sid| sid.name == MACHINE).map(|sid| &sid.context);
        let machine = machine.context("the policy in force has no initial SID `init`")?;
        let (source, class) = (self.server.intern(machine)?, self.server.class("process")?);
        let target = self.server.context(&file)?;
        let Ok(domain) = self.server.label(Ask::Transition, source, target, class, None) else { return Ok(None) };
        Ok(self.is_confined(domain.type_).then(|| cil::type_name(policy, domain.type_)))
    }

    fn is_confined(&self, domain: u32) -> bool {
        let unconfined = self.server.names().attribute(UNCONFINED);
        let attributes = self.built.policy.types.get(domain as usize).map(|kind| &kind.set);
        attributes.is_some_and(|set| !unconfined.is_some_and(|unconfined| set.has(unconfined)))
    }

    /// The owners of a service's ports and files; those of the block `own` are its own.
    pub(super) fn found(&self, service: &Service, own: &str) -> anyhow::Result<Found> {
        let own = format!("{own}.");
        let mut found = Found::default();
        for port in &service.listening.ports {
            let kind = self.port(*port).filter(|kind| !kind.starts_with(&own));
            found.ports.insert(*port, kind);
        }
        for place in service.places() {
            let kind = self.file(&place)?;
            if let Some(kind) = kind.filter(|kind| !COMMON.contains(&kind.as_str()) && !kind.starts_with(&own)) {
                found.claimed.insert(place, kind);
            }
        }
        Ok(found)
    }

    /// The type of a file or directory by `file_contexts`.
    fn file(&self, place: &Place) -> anyhow::Result<Option<String>> {
        let mode = if place.is_folder { libc::S_IFDIR | 0o755 } else { libc::S_IFREG | 0o755 };
        let label = self.files.lookup(&place.path, mode)?;
        Ok(label.and_then(|label| label.split(':').nth(2).map(str::to_owned)))
    }

    /// The type of a port, if it is not a type that all ports have.
    pub(super) fn port(&self, port: Port) -> Option<String> {
        let (protocol, number) = (protocol(port.protocol), port.number);
        let holds =
            |context: &&PortContext| context.protocol == protocol && (context.low..=context.high).contains(&number);
        let narrowest = self.built.policy.ports.iter().filter(holds).min_by_key(|context| context.high - context.low);
        let kind = narrowest.map(|context| cil::type_name(&self.built.policy, context.context.type_));
        kind.filter(|kind| !tollgate_service::narrow::UNTYPED.contains(&kind.as_str()))
    }

    /// What a domain may do, for the description in words.
    pub(super) fn words_of(&self, domain: &str) -> Domain {
        Domain {
            name: domain.to_owned(),
            grants: Grants::of(&self.built.policy, self.server.tables(), domain),
            paths: paths(&self.built.file_contexts),
            ports: self.ports(),
        }
    }

    fn ports(&self) -> BTreeMap<String, Vec<String>> {
        let mut ports: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for PortContext { protocol: number, low, high, context } in &self.built.policy.ports {
            let known = [Protocol::Tcp, Protocol::Udp].into_iter().find(|known| protocol(*known) == *number);
            let Some(known) = known else { continue };
            let range = if low == high { low.to_string() } else { format!("{low}-{high}") };
            ports
                .entry(cil::type_name(&self.built.policy, context.type_))
                .or_default()
                .push(format!("{known} {range}"));
        }
        ports
    }

    /// The existing paths that belong to a domain.
    pub(super) fn files_of(&self, domain: &str) -> BTreeSet<PathBuf> {
        let stem = domain.strip_suffix(".t").unwrap_or(domain);
        let own = format!("{stem}.");
        let mine = paths(&self.built.file_contexts).into_iter().filter(|(kind, _)| kind.starts_with(&own));
        mine.flat_map(|(_, paths)| paths).map(PathBuf::from).filter(|path| path.exists()).collect()
    }
}

fn protocol(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
    }
}

/// The paths that `file_contexts` give each type, in plain form: `/var/lib/web` for `/var/lib/web(/.*)?`.
fn paths(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for found in specifications(text) {
        let Some(kind) = found.context.and_then(|context| context.split(':').nth(2)) else { continue };
        let expression = found.expression.strip_suffix("(/.*)?").unwrap_or(found.expression);
        let each = alternatives(expression).into_iter().map(|path| path.replace("\\.", "."));
        paths.entry(kind.to_owned()).or_default().extend(each);
    }
    paths
}

/// `/run/a` and `/run/b` for `/run/(a|b)`, because file_contexts name directories of several programs in one line. Optional
/// groups, and nested ones, stay as they are.
fn alternatives(expression: &str) -> Vec<String> {
    let group = expression.split_once('(').and_then(|(before, rest)| {
        let (group, after) = rest.split_once(')')?;
        let is_plain = !group.contains('(') && !after.starts_with(['?', '*', '+']);
        is_plain.then_some((before, group, after))
    });
    let Some((before, group, after)) = group else { return vec![expression.to_owned()] };
    let tails = alternatives(after);
    let joined = group.split('|').flat_map(|word| tails.iter().map(move |tail| format!("{before}{word}{tail}")));
    joined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_paths_as_people_do() {
        let paths =
            paths("/var/lib/web(/.*)? u:r:web.data_t:s0\n/run/web\\.pid -- u:r:web.run_t:s0\n/proc(/.*)? <<none>>\n");
        assert_eq!(paths["web.data_t"], ["/var/lib/web"]);
        assert_eq!(paths["web.run_t"], ["/run/web.pid"]);
        assert_eq!(paths.len(), 2);
    }

    #[test]
    fn names_each_path_that_one_line_is_for() {
        let paths = paths("/var/(lib|log)/(db|sql)(/.*)? u:r:db.data_t:s0\n/(usr/)?s?bin/x -- u:r:db.exec_t:s0\n");
        assert_eq!(paths["db.data_t"], ["/var/lib/db", "/var/lib/sql", "/var/log/db", "/var/log/sql"]);
        assert_eq!(paths["db.exec_t"], ["/(usr/)?s?bin/x"]);
    }
}
