//! `tollgate status --wait`: waits until the daemon answers, and prints what it does meanwhile.

use std::{
    thread,
    time::{Duration, Instant},
};

use tollgate_client::{Client, ClientError};
use tollgate_enforcer::{daemon::doing::Doing, enforcer::Folder};

const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The wait ends after this long without any activity of the daemon.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits until a daemon that is starting answers. If there is none it returns at once, and the caller's own request fails.
pub(super) fn for_daemon() {
    let folder = Folder::default();
    let (mut told, mut active) = (String::new(), Instant::now());
    while active.elapsed() < IDLE_TIMEOUT {
        if let Some(doing) = Doing::read(folder.path()) {
            active = Instant::now();
            if doing != told {
                eprintln!("tollgate: {doing}");
                told = doing;
            }
        } else if !matches!(Client::connect(), Err(ClientError::NoDaemon { .. })) {
            return;
        }
        thread::sleep(POLL_INTERVAL);
    }
}
