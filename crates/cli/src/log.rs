//! What libraries log, by levels: lines on standard error; where that is the journal, the daemon's are records with fields.

use std::{
    env,
    ffi::OsStr,
    fmt::{Debug, Write as _},
    io::{self, Write as _},
    os::fd::AsFd,
};

use anyhow::bail;
use nix::sys::stat::fstat;
use tollgate_policy::libbpf;
use tracing::{
    Event, Level, Metadata, Subscriber, dispatcher, enabled, error,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
    subscriber::set_global_default,
};
use tracing_journald::{Priority, PriorityMappings};
use tracing_subscriber::{layer::SubscriberExt, registry};

/// Says from which level on messages are logged.
const LEVEL: &str = "TOLLGATE_LOG";
/// systemd has there what standard error is, where that is the journal: `DEVICE:INODE`.
const JOURNAL_STREAM: &str = "JOURNAL_STREAM";

/// Begins to log. `records`: as records with fields, where standard error is the journal.
pub(crate) fn begin(records: bool) -> anyhow::Result<()> {
    let level = level(env::var_os(LEVEL).as_deref())?;
    let journal = records && is_stream(env::var_os(JOURNAL_STREAM).as_deref(), io::stderr());
    // The journal that cannot be reached has lines at least.
    match journal.then(tracing_journald::Layer::new) {
        Some(Ok(journal)) => set_global_default(registry().with(level).with(named(journal)))?,
        Some(Err(_)) | None => set_global_default(Lines(level))?,
    }
    libbpf::log();
    Ok(())
}

/// The error that a command ends by, which is told whatever the level.
pub(crate) fn failed(cause: &anyhow::Error) {
    if enabled!(Level::ERROR) && !dispatcher::get_default(|current| current.is::<Lines>()) {
        error!("{cause:#}");
    } else {
        eprintln!("tollgate: {cause:#}");
    }
}

fn level(word: Option<&OsStr>) -> anyhow::Result<LevelFilter> {
    Ok(match word.map(OsStr::as_encoded_bytes) {
        None | Some(b"info") => LevelFilter::INFO,
        Some(b"debug") => LevelFilter::DEBUG,
        Some(b"warn") => LevelFilter::WARN,
        Some(b"error") => LevelFilter::ERROR,
        Some(b"off") => LevelFilter::OFF,
        Some(_) => bail!("{LEVEL} is {:?}: set it to debug, info, warn, error or off", word.unwrap_or_default()),
    })
}

/// Whether a file is what `JOURNAL_STREAM` names.
fn is_stream(named: Option<&OsStr>, file: impl AsFd) -> bool {
    let named = named.and_then(OsStr::to_str).and_then(|named| named.split_once(':'));
    fstat(file).is_ok_and(|file| named == Some((&*file.st_dev.to_string(), &*file.st_ino.to_string())))
}

/// Levels as syslog's, and fields called `TOLLGATE_...`.
fn named(journal: tracing_journald::Layer) -> tracing_journald::Layer {
    let priorities =
        PriorityMappings { info: Priority::Informational, debug: Priority::Debug, ..PriorityMappings::new() };
    journal
        .with_syslog_identifier("tollgate".to_owned())
        .with_field_prefix(Some("TOLLGATE".to_owned()))
        .with_priority_mappings(priorities)
}

/// Lines `tollgate: MESSAGE`. It keeps nothing, so that the process that measures stays as it is.
struct Lines(LevelFilter);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.0
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.0)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line("tollgate: ".to_owned());
        event.record(&mut line);
        line.0.push('\n');
        // Nobody may read it any more: the work goes on.
        let _ = io::stderr().write_all(line.0.as_bytes());
    }

    // Nothing here is in a span.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// A message, whose text has what its fields have.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // A string takes any text.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::unix::fs::MetadataExt};

    use super::*;

    #[test]
    fn takes_the_levels_that_it_names_and_refuses_others() {
        assert_eq!(level(None).unwrap(), LevelFilter::INFO);
        for (word, expected) in [
            ("debug", LevelFilter::DEBUG),
            ("info", LevelFilter::INFO),
            ("warn", LevelFilter::WARN),
            ("error", LevelFilter::ERROR),
            ("off", LevelFilter::OFF),
        ] {
            assert_eq!(level(Some(OsStr::new(word))).unwrap(), expected);
        }
        let refusal = level(Some(OsStr::new("loud"))).unwrap_err().to_string();
        assert_eq!(refusal, "TOLLGATE_LOG is \"loud\": set it to debug, info, warn, error or off");
    }

    #[test]
    fn knows_the_journal_by_device_and_inode() {
        let file = File::open("/dev/null").unwrap();
        let meta = file.metadata().unwrap();
        let named = |device: u64, inode: u64| is_stream(Some(OsStr::new(&format!("{device}:{inode}"))), &file);
        assert!(named(meta.dev(), meta.ino()));
        assert!(!named(meta.dev(), meta.ino() + 1));
        assert!(!is_stream(Some(OsStr::new("")), &file) && !is_stream(None, &file));
    }
}
