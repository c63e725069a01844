//! `tollgate preload`: programs in the kernel before enforcement starts.

use std::process::ExitCode;

use anyhow::bail;
use tollgate_enforcer::{
    preloaded::preload,
    programs::{self, Pins},
    requirements::{self, Places},
};

use crate::output;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    requirements::root()?;
    requirements::kernel(&Places::default())?;
    let pins = Pins::default();
    requirements::pins(&pins)?;
    if programs::pinned(&pins) {
        bail!("a policy is in force: its programs are loaded and attached; `tollgate stop` ends enforcement");
    }
    let loaded = preload(&pins)?;
    output::line(&format!("{loaded} programs are loaded; `tollgate enforce` attaches those that a policy needs"))
        .map(|()| ExitCode::SUCCESS)
}
