//! Round trips through pipes.

use std::io::{self, PipeReader, PipeWriter};

use nix::{
    errno::Errno,
    unistd::{read, write},
};

use crate::{error::Context, place::Place, workload::Prepared, workloads::peer::Peer};

pub(super) fn byte(_: &Place) -> Prepared {
    token_ring::<1>()
}

/// Passes a token of `SIZE` bytes to a peer and back, through a pipe each way.
pub(in crate::workloads) fn token_ring<const SIZE: usize>() -> Prepared {
    let (peers_in, out) = io::pipe().context("make a pipe")?;
    let (back, peers_out) = io::pipe().context("make a pipe")?;
    let mut held = [0; SIZE];
    let peer = Peer::fork(move || {
        take(&peers_in, &mut held)?;
        pass(&peers_out, &held)
    })?;
    let mut token = [1; SIZE];
    Ok(Box::new(move || {
        let passed = pass(&out, &token);
        peer.explain(passed.and_then(|()| take(&back, &mut token)))
    }))
}

/// Writes a token; one of less than a page goes whole or not at all (pipe(7)).
fn pass(pipe: &PipeWriter, token: &[u8]) -> nix::Result<()> {
    write(pipe, token).map(drop)
}

fn take(pipe: &PipeReader, token: &mut [u8]) -> nix::Result<()> {
    match read(pipe, token)? {
        0 => Err(Errno::EPIPE),
        _ => Ok(()),
    }
}
