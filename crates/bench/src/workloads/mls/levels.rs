//! How many levels are alive at once: sockets of as many levels, each of which is looked at.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::{
    resource::{Resource, getrlimit, setrlimit},
    socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, getsockname, socket},
};

use crate::{confine::label_new_sockets, error::Context, place::Place, workload::Prepared};

/// The workloads, and how many levels each has.
const WORKLOADS: [(&str, usize); 4] = [("levels-1", 1), ("levels-16", 16), ("levels-256", 256), ("levels-1024", 1024)];

/// The context of one of the sockets, in Debian's MLS policy.
fn context(number: usize) -> String {
    format!("system_u:system_r:kernel_t:s0:c{number}")
}

/// The contexts that a job's workloads give to what they make.
pub(crate) fn contexts(workloads: &[String]) -> Vec<String> {
    let is_in = |name: &str| workloads.iter().any(|workload| workload == name);
    let most = WORKLOADS.into_iter().filter(|(name, _)| is_in(name)).map(|(_, levels)| levels).max();
    (0..most.unwrap_or_default()).map(context).collect()
}

pub(super) fn looks<const LEVELS: usize>(_: &Place) -> Prepared {
    // Some are open already.
    let enough = LEVELS as u64 + 64;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("get the limit of descriptors")?;
    if soft < enough {
        setrlimit(Resource::RLIMIT_NOFILE, enough.min(hard), hard).context("raise the limit of descriptors")?;
    }
    let make = |number| {
        label_new_sockets(Some(&context(number)))?;
        socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .context("make a socket of a level")
    };
    let made = (0..LEVELS).map(make).collect::<Result<Vec<OwnedFd>, _>>();
    label_new_sockets(None)?;
    let sockets = made?;
    Ok(Box::new(move || {
        sockets.iter().try_for_each(|socket| getsockname::<SockaddrStorage>(socket.as_raw_fd()).map(drop))?;
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_the_contexts_of_the_workload_with_most_levels() {
        let workloads = ["levels-1", "null", "levels-16"].map(str::to_owned);
        let contexts = contexts(&workloads);
        assert_eq!((contexts.len(), contexts[15].as_str()), (16, "system_u:system_r:kernel_t:s0:c15"));
        assert!(super::contexts(&workloads[1..2]).is_empty());
    }
}
