//! `tollgate net peer`: who is at the other end of a socket.

use std::{net::SocketAddr, os::fd::AsFd, process::ExitCode};

use anyhow::Context;
use clap::Args;
use tollgate_client::{Client, pidfd};

use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The process that has the socket, and its descriptor there (`ls -l /proc/PID/fd`)
    #[arg(long, value_name = "PID:FD", value_parser = place)]
    of: (i32, i32),
    /// For datagrams: the sender that is meant; by default, whoever sent last
    #[arg(long, value_name = "ADDRESS:PORT")]
    from: Option<SocketAddr>,
}

/// A process and a descriptor.
fn place(text: &str) -> Result<(i32, i32), String> {
    let numbers = text.split_once(':').and_then(|(pid, fd)| Some((pid.parse().ok()?, fd.parse().ok()?)));
    numbers.ok_or_else(|| "write PID:FD, such as 714:5".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (pid, descriptor) = arguments.of;
    let process = pidfd::open(pid).with_context(|| format!("cannot open process {pid}"))?;
    let socket = pidfd::descriptor(process.as_fd(), descriptor);
    let socket = socket.with_context(|| format!("cannot get descriptor {descriptor} of process {pid}"))?;
    let mut daemon = Client::connect()?;
    let peer = match arguments.from {
        Some(sender) => daemon.heard(socket.as_fd(), sender)?,
        None => daemon.peer(socket.as_fd())?,
    };
    let known = peer.is_some();
    output::write(&format!("{}\n", peer.as_deref().unwrap_or("not known")))?;
    Ok(ExitCode::from(u8::from(!known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_process_and_descriptor() {
        assert_eq!(place("714:5"), Ok((714, 5)));
        for text in ["714", "714:", ":5", "a:5", "714:5:6"] {
            assert!(place(text).is_err(), "{text}");
        }
    }
}
