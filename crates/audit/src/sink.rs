//! Where log entries go: to the kernel's audit, or to a file in auditd's format if there is none; and always to the
//! JSON log.

use std::{io, path::Path};

use super::{Entry, Load, Untrusted, netlink::AuditSocket, rotated::Rotated};

/// The directory of the logs.
pub const FOLDER: &str = "/var/log/tollgate";
/// File for records in auditd's format, if the kernel has no audit to take them.
pub const TEXT: &str = "audit.log";
/// File for entries as JSON, one per line.
pub const JSON: &str = "audit.json";

/// Maximum length of a log file, in bytes. A file that would be longer is renamed.
const MAX_FILE_LENGTH: u64 = 8 << 20;
/// How many renamed files are kept.
pub(super) const MAX_RENAMED: u32 = 4;

/// Writes log entries.
#[derive(Debug)]
pub struct Sink {
    text: Text,
    text_file: Rotated,
    json: Rotated,
    sender: Sender,
    serial: u64,
    errors: Errors,
}

#[derive(Debug)]
enum Text {
    Kernel(AuditSocket),
    File,
}

/// Types of audit records, without `USER_`.
#[derive(Debug, Clone, Copy)]
enum Type {
    Avc,
    SelinuxErr,
    PolicyLoad,
}

/// Writes that failed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Errors {
    /// Number of failures.
    pub count: u64,
    /// The last failure, in words.
    pub last: Option<String>,
}

/// The process that sends the records: the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sender {
    pid: u32,
    uid: u32,
    /// The user who logged in, and the session; u32::MAX: there is none.
    auid: u32,
    session: u32,
    exe: Untrusted,
}

impl Sink {
    /// Opens the files in `folder`, which is created if necessary. The kernel's audit takes the records if it exists
    /// and this process may write to it (CAP_AUDIT_WRITE); only the first record shows whether it does.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let text = AuditSocket::open().map_or(Text::File, Text::Kernel);
        Self::with(folder, text)
    }

    /// Opens the files only, and leaves the kernel's audit out.
    pub fn files(folder: &Path) -> io::Result<Self> {
        Self::with(folder, Text::File)
    }

    fn with(folder: &Path, text: Text) -> io::Result<Self> {
        Ok(Self {
            text,
            text_file: Rotated::new(folder.join(TEXT), MAX_FILE_LENGTH, MAX_RENAMED),
            json: Rotated::open(folder.join(JSON), MAX_FILE_LENGTH, MAX_RENAMED)?,
            sender: Sender::this(),
            serial: 0,
            errors: Errors::default(),
        })
    }

    /// Whether the kernel's audit takes the records.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        matches!(self.text, Text::Kernel(_))
    }

    /// The writes that failed.
    #[must_use]
    pub fn errors(&self) -> &Errors {
        &self.errors
    }

    /// Writes an entry. A failure is only counted, because the denied process must not wait.
    pub fn write(&mut self, entry: &Entry) {
        let json = serde_json::to_vec(entry).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.json.append(&line)
        });
        self.count("write the JSON log", json);
        let (kind, message) = (Type::of(entry), self.sender.message(entry));
        if let Text::Kernel(socket) = &mut self.text {
            match socket.send(kind.number(), &message) {
                // This kernel has no audit, or takes no records from this process. It is not tried again.
                Err(error) if AuditSocket::is_refusal(&error) => self.text = Text::File,
                sent => return self.count("send to the kernel's audit", sent),
            }
        }
        self.serial += 1;
        let line = self.sender.record(kind, &message, entry.time(), self.serial);
        let written = self.text_file.append(line.as_bytes());
        self.count("write the audit log", written);
    }

    fn count(&mut self, what: &str, result: io::Result<()>) {
        if let Err(cause) = result {
            self.errors.count += 1;
            self.errors.last = Some(format!("cannot {what}: {cause}"));
        }
    }
}

impl Type {
    fn of(entry: &Entry) -> Self {
        match entry {
            Entry::Avc(_) => Self::Avc,
            Entry::Lost(_) => Self::SelinuxErr,
            Entry::Load(_) => Self::PolicyLoad,
        }
    }

    /// The number of the type in libaudit.h.
    fn number(self) -> u16 {
        match self {
            Self::Avc => 1107,
            Self::SelinuxErr => 1122,
            Self::PolicyLoad => 1125,
        }
    }

    /// The name of the type in auditd's log.
    fn name(self) -> &'static str {
        match self {
            Self::Avc => "USER_AVC",
            Self::SelinuxErr => "USER_SELINUX_ERR",
            Self::PolicyLoad => "USER_MAC_POLICY_LOAD",
        }
    }
}

impl Sender {
    fn this() -> Self {
        let number = |path: &str| {
            std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(u32::MAX)
        };
        let exe = std::env::current_exe().unwrap_or_default();
        Self {
            pid: std::process::id(),
            uid: nix::unistd::getuid().as_raw(),
            auid: number("/proc/self/loginuid"),
            session: number("/proc/self/sessionid"),
            exe: Untrusted::new(exe.into_os_string().into_encoded_bytes()),
        }
    }

    /// The text of a record, which ends as audit_log_user_avc_message of libaudit ends it.
    fn message(&self, entry: &Entry) -> String {
        let text = match entry {
            Entry::Avc(denial) => denial.to_string(),
            Entry::Lost(lost) => format!("avc:  lost {} events: {}", lost.count, lost.reason.text()),
            // The JSON log has the cause: a record has no field for words.
            Entry::Load(Load { generation, mode, success, .. }) => {
                let (result, [generation, mode]) =
                    (u8::from(*success), [generation, mode].map(|known| known.as_deref().unwrap_or("?")));
                format!("avc:  op=load_policy lsm=tollgate generation={generation} mode={mode} res={result}")
            }
        };
        format!("{text} exe={} sauid={} hostname=? addr=? terminal=?", self.exe, self.uid)
    }

    /// The line that auditd would write for the record.
    fn record(&self, kind: Type, message: &str, time: u64, serial: u64) -> String {
        let kind = kind.name();
        let Self { pid, uid, auid, session, .. } = self;
        let (seconds, milliseconds) = (time / 1000, time % 1000);
        format!(
            "type={kind} msg=audit({seconds}.{milliseconds:03}:{serial}): pid={pid} uid={uid} auid={auid} ses={session} \
             msg='{message}'\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tollgate_abi::enforcer::tg_event;

    use super::*;
    use crate::{Denial, Load, Lost, Reason, Untrusted};

    fn entries() -> [Entry; 3] {
        let mut denial = Denial::new(&tg_event::default(), 0, |_| Some("u:r:t:s0".into()));
        denial.time = 1_234_567_089;
        denial.comm = Untrusted::new("it's");
        let (generation, mode, cause) =
            (Some("12ab".to_owned()), Some("enforcing".to_owned()), Some("a question".to_owned()));
        let load = Entry::Load(Load { time: 10, generation, mode, success: false, cause });
        [Entry::Avc(denial), Entry::Lost(Lost { time: 9, count: 17, reason: Reason::RingBuffer }), load]
    }

    #[test]
    fn writes_records_of_auditds_form_with_a_serial_each() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = Sink::files(folder.path()).unwrap();
        sink.sender = Sender { pid: 5, uid: 0, auid: u32::MAX, session: u32::MAX, exe: Untrusted::new("/usr/bin/t g") };
        entries().iter().for_each(|entry| sink.write(entry));
        let text = fs::read_to_string(folder.path().join(TEXT)).unwrap();
        let sender = "pid=5 uid=0 auid=4294967295 ses=4294967295";
        let end = "exe=2F7573722F62696E2F742067 sauid=0 hostname=? addr=? terminal=?'";
        let [avc, lost, load] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(avc.starts_with(&format!("type=USER_AVC msg=audit(1234567.089:1): {sender} msg='avc:  ")), "{avc}");
        assert!(avc.ends_with(end) && avc.contains(" comm=69742773 "), "{avc}");
        let expected = format!(
            "type=USER_SELINUX_ERR msg=audit(0.009:2): {sender} msg='avc:  lost 17 events: the ring buffer was full {end}"
        );
        assert_eq!(lost, expected);
        let expected = format!(
            "type=USER_MAC_POLICY_LOAD msg=audit(0.010:3): {sender} msg='avc:  op=load_policy lsm=tollgate generation=12ab \
             mode=enforcing res=0 {end}"
        );
        assert_eq!(load, expected);
        assert_eq!(sink.errors(), &Errors::default());
    }

    #[test]
    fn keeps_every_entry_as_json() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = Sink::files(folder.path()).unwrap();
        entries().iter().for_each(|entry| sink.write(entry));
        let text = fs::read_to_string(folder.path().join(JSON)).unwrap();
        let read: Vec<Entry> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, entries());
        assert!(text.contains("\"type\":\"avc\"") && text.contains("\"reason\":\"ring-buffer\""), "{text}");
    }

    #[test]
    fn counts_what_it_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(TEXT)).unwrap();
        let mut sink = Sink::files(folder.path()).unwrap();
        entries().iter().for_each(|entry| sink.write(entry));
        assert_eq!(sink.errors().count, 3);
        assert!(sink.errors().last.as_deref().unwrap().starts_with("cannot write the audit log: "), "{sink:?}");
    }
}
