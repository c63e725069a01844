//! `tollgate stop`: ends enforcement.

use std::process::ExitCode;

use clap::Args;
use tollgate_client::{Client, ClientError};
use tollgate_enforcer::{
    datapath::running,
    enforcer::Folder,
    programs::{self, Pins},
    progress::Progress,
    requirements, status_page,
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// If no daemon answers, detach its programs from here
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let progress = Progress::default();
    let _telling = progress.tell(|text| eprintln!("tollgate: {text}"));
    progress.begin("ending enforcement: each program waits until nobody runs it");
    match Client::connect().and_then(|mut client| client.stop()) {
        Err(ClientError::NoDaemon { .. }) if arguments.force => {
            requirements::root()?;
            running::end(&Pins::default(), Folder::default().path());
            programs::unpin(&Pins::default())?;
            status_page::end(&Folder::default().status());
        }
        Err(cause @ ClientError::NoDaemon { .. }) if programs::pinned(&Pins::default()) => {
            let remedy = "`tollgate stop --force` ends enforcement without a daemon";
            return Err(anyhow::Error::from(cause).context(remedy));
        }
        other => other?,
    }
    Ok(ExitCode::SUCCESS)
}
