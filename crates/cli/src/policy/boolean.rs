//! `tollgate policy bool`: booleans, listed and set.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use tollgate_policy::booleans;

use crate::{difference, output, policies};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    policy: PathBuf,
    /// Values to set, as NAME=on; without any, the booleans are listed
    #[arg(value_name = "NAME=on|off")]
    assignments: Vec<String>,
    /// Write the policy with these values; without this option, what they grant and take away is printed
    #[arg(short, long, value_name = "POLICY", requires = "assignments")]
    out: Option<PathBuf>,
    /// Print all names of long lists
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let built = policies::open(&arguments.policy)?;
    if arguments.assignments.is_empty() {
        let list = booleans::list(&built.policy);
        if arguments.json {
            output::json(&list)?;
            return Ok(ExitCode::SUCCESS);
        }
        let width = list.iter().map(|boolean| boolean.name.len()).max().unwrap_or_default();
        for boolean in list {
            let value = if boolean.value { "on" } else { "off" };
            output::line(&format!("{:<width$} {value:<3} {:>5} rules", boolean.name, boolean.rules))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let assignments =
        arguments.assignments.iter().map(|text| booleans::assignment(text)).collect::<Result<Vec<_>, _>>()?;
    let changed = booleans::set(&built, &assignments)?;
    if let Some(path) = &arguments.out {
        changed.write(path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = difference::between(&built, &changed)?;
    if arguments.json {
        output::json(&found)?;
    } else {
        output::write(&difference::text(&found, arguments.all))?;
    }
    Ok(ExitCode::SUCCESS)
}
