//! Requests more time from the service manager while the daemon makes progress. All files are labelled before the
//! daemon answers, however many there are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::sys::resource::{UsageWho, getrusage};

use super::notify::notify;

/// How often, and for how much time, it asks. A daemon that hangs uses no processor time, and gets no extension.
const EXTENSION_INTERVAL: Duration = Duration::from_secs(10);
const MORE: &str =
    "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=files are labelled; unlabelled ones are denied to confined domains";

/// Requests time until it is dropped.
#[derive(Debug)]
pub struct Extension {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Extension {
    /// Begins, if there is a service manager.
    #[must_use]
    pub fn begin() -> Self {
        Self::every(EXTENSION_INTERVAL, std::env::var("NOTIFY_SOCKET").ok())
    }

    fn every(beat: Duration, socket: Option<String>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = socket.map(|socket| {
            thread::spawn(move || {
                let mut used = Duration::ZERO;
                while !ends.load(Ordering::SeqCst) {
                    let now = processor();
                    if now > used {
                        // If the service manager cannot be reached, it gives no time.
                        let _ = notify(socket.as_bytes(), MORE, None);
                    }
                    used = now;
                    thread::park_timeout(beat);
                }
            })
        });
        Self { over, thread }
    }
}

impl Drop for Extension {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// The processor time that this process has used, in tenths of a second, because asking itself uses some.
fn processor() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let used = [usage.user_time(), usage.system_time()];
    let tenths: i64 = used.iter().map(|time| time.tv_sec() * 10 + time.tv_usec() / 100_000).sum();
    Duration::from_millis(tenths.cast_unsigned() * 100)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixDatagram, time::Instant};

    use super::*;

    #[test]
    fn asks_for_time_while_it_gets_on_and_no_longer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let extension = Extension::every(Duration::from_millis(50), path.to_str().map(str::to_owned));
        let began = processor();
        while processor() < began + Duration::from_millis(300) {
            std::hint::black_box(Instant::now());
        }
        let mut buffer = [0; 200];
        let length = manager.recv(&mut buffer).unwrap();
        assert!(buffer[..length].starts_with(b"EXTEND_TIMEOUT_USEC="));
        drop(extension);
        manager.set_nonblocking(true).unwrap();
        while manager.recv(&mut buffer).is_ok() {}
        thread::sleep(Duration::from_millis(150));
        assert!(manager.recv(&mut buffer).is_err());
    }
}
