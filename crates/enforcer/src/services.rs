//! Compares what should be confined to what runs: services by unit, and other programs that have a domain of their own.

pub mod entry;
pub mod listening;
pub mod processes;
pub mod seen;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use tollgate_client::services::{Service, Verdict};

use crate::contexts::domain;

/// A process, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process number.
    pub number: u32,
    /// Name of the process (`comm`), which it can choose.
    pub name: String,
    /// The system manager's unit that the process belongs to.
    pub unit: Option<String>,
    /// The file that it executes, and the script that this one runs.
    pub programs: Vec<PathBuf>,
    /// Context of the process.
    pub context: String,
    /// Whether the process is confined.
    pub confined: bool,
    /// For an unconfined process: what it should be, and why it is not.
    pub lack: Option<Lack>,
}

/// The domain that an unconfined process should be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Type of the domain.
    pub domain: String,
    /// Why it is not in that domain, and the remedy.
    pub why: String,
}

/// The name of a process that executes no program: the one that systemd keeps for PAM.
const FOR_PAM: &str = "(sd-pam)";

/// The services of these processes, by name. `listening` says where each process listens. A service that neither should
/// be confined nor listens is left out.
#[must_use]
pub fn judge(processes: &[Process], listening: &BTreeMap<u32, BTreeSet<String>>) -> Vec<Service> {
    let mut services: BTreeMap<String, Service> = BTreeMap::new();
    for process in processes.iter().filter(|process| process.name != FOR_PAM) {
        let Some(name) = name_of(process) else { continue };
        let service = services.entry(name).or_insert_with_key(|name| Service {
            name: name.clone(),
            expected: None,
            domains: BTreeMap::new(),
            listening: BTreeSet::new(),
            verdict: Verdict::Unconfined,
            why: Vec::new(),
        });
        add(service, process);
        service.listening.extend(listening.get(&process.number).into_iter().flatten().cloned());
    }
    services.retain(|_, service| service.verdict != Verdict::Unconfined || !service.listening.is_empty());
    services.into_values().collect()
}

/// The service under which a process is listed.
fn name_of(process: &Process) -> Option<String> {
    let program = || process.programs.first().map(|program| program.display().to_string());
    process.unit.clone().or_else(program)
}

/// Adds to a service what one of its processes is, and what it should be.
fn add(service: &mut Service, process: &Process) {
    let domain = domain(&process.context).to_owned();
    *service.domains.entry(domain.clone()).or_default() += 1;
    if process.confined {
        service.expected.get_or_insert(domain);
        service.verdict = if service.why.is_empty() { Verdict::Confined } else { Verdict::NotConfined };
    }
    if let Some(lack) = &process.lack {
        service.expected = Some(lack.domain.clone());
        service.verdict = Verdict::NotConfined;
        let why = format!("process {} ({}) should be {}: {}", process.number, process.name, lack.domain, lack.why);
        service.why.push(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(number: u32, unit: Option<&str>, domain: &str, lacks: Option<&str>) -> Process {
        Process {
            number,
            name: "web".to_owned(),
            unit: unit.map(str::to_owned),
            programs: vec!["/usr/bin/web".into()],
            context: format!("system_u:system_r:{domain}:s0"),
            confined: domain != "unconfined_t",
            lack: lacks.map(|domain| Lack { domain: domain.to_owned(), why: "restart it".to_owned() }),
        }
    }

    fn judged(processes: &[Process]) -> Vec<(String, Verdict, usize)> {
        let listening = BTreeMap::from([(7, BTreeSet::from(["tcp 80".to_owned()]))]);
        judge(processes, &listening).into_iter().map(|one| (one.name, one.verdict, one.why.len())).collect()
    }

    #[test]
    fn is_not_content_before_all_processes_of_a_unit_are_as_they_should() {
        let web = Some("web.service");
        let good = process(1, web, "web_t", None);
        let bad = process(2, web, "unconfined_t", Some("web_t"));
        let is = |verdict, why| vec![("web.service".to_owned(), verdict, why)];
        assert_eq!(judged(&[good.clone(), process(3, web, "unconfined_t", None)]), is(Verdict::Confined, 0));
        assert_eq!(judged(&[good.clone(), bad.clone()]), is(Verdict::NotConfined, 1));
        assert_eq!(judged(&[bad, good]), is(Verdict::NotConfined, 1));
    }

    #[test]
    fn tells_of_what_nothing_is_expected_only_where_it_listens() {
        assert_eq!(judged(&[process(1, None, "unconfined_t", None)]), []);
        let told = vec![("/usr/bin/web".to_owned(), Verdict::Unconfined, 0)];
        assert_eq!(judged(&[process(7, None, "unconfined_t", None)]), told);
        let mut kept = process(7, Some("web.service"), "unconfined_t", Some("web_t"));
        kept.name = FOR_PAM.to_owned();
        assert_eq!(judged(&[kept]), []);
    }
}
