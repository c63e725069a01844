//! `tollgate service unconfine`: removes a service's domain.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use tollgate_service::{
    machine,
    service::{Entry, Service},
};

use super::{act, confine::subject};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The service, by the name with which it was confined
    name: String,
    /// Leave the service running: it keeps its domain until it is restarted
    #[arg(long)]
    no_restart: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let service = service(&arguments.name)?;
    let subject = subject(&service);
    let Some((name, module)) = act::module_of(&subject)? else {
        bail!(
            "no module of {subject} was made by `tollgate service confine`: a domain of the policy itself stays (its program's \
             label is what enters it; `tollgate mode permissive --domain TYPE` lets it do everything)"
        );
    };
    // The unit's context goes first, because a unit whose context the policy does not have cannot start.
    if let (Some(unit), Entry::Unit, false) = (service.unit(), service.entry(), module.block.is_empty()) {
        act::set_unit(unit, None)?;
    }
    act::remove(&name)?;
    if let Some(unit) = service.unit().filter(|_| !arguments.no_restart) {
        act::restart(unit)?;
    }
    output::line(&format!("{subject}: {} is gone, and so are its rules", name))?;
    Ok(ExitCode::SUCCESS)
}

/// The service, even if it does not run.
fn service(name: &str) -> anyhow::Result<Service> {
    Ok(machine::service(name)?)
}
