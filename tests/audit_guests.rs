//! The audit on real kernels: the records of the object managers for each denial, through the kernel's audit and through
//! files, in storms, and while no daemon runs.
//!
//! QEMU and a kernel, and Debian's packages of auditd and audit2allow, are needed, from the cache or a network: without them
//! these tests fail, and say so.

use std::{
    ffi::{CString, OsStr},
    fs::File,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::PathBuf,
};

use tollgate_audit::{Denial, Entry, Lost, Reason};

use crate::program::{
    Ended, Scratch,
    auditors::{audit2allow, ausearch},
    inside::name,
    machine::{self, Machine, own_part, source},
    steps::TIMEOUT,
    word,
};

/// The beginning of both kinds of guest.
const PLACES: &str = r#"
# Where no auditd listens the kernel prints its audit, the loading of each BPF program too, but for ten in five seconds.
echo 0 > /proc/sys/kernel/printk_ratelimit
mkdir -p /run /var/log /deep; mount -t tmpfs none /deep; mkdir -p /deep/er /deep/mnt /deep/jail
"#;

/// Starts the kernel's SELinux, with the same functions as below; `TEST` is the test that labels.
const START_SELINUX: &str = r#"
mount -t selinuxfs none /sys/fs/selinux
dd if=/image of=/sys/fs/selinux/load bs=16M 2>/dev/null && echo 1 > /sys/fs/selinux/enforce || exit 3
secret() { echo secret > "$1"; TOLLGATE_TEST_LABEL="$1" /tests --exact $TEST > /dev/null || exit 4; }
permissive() { echo 0 > /sys/fs/selinux/enforce; }
as_audited() {
    program=$(which $1); shift
    sh -c 'printf system_u:system_r:audited_t:s0 > /proc/self/attr/exec; exec "$@"' sh $program "$@"
}
"#;

/// Starts enforcement; `secret` makes a file of type secret_t, `as_audited` runs a command in the domain of tests/policies/audited.cil.
const START: &str = r#"
mount -t bpf none /sys/fs/bpf 2>/dev/null
secret() { echo secret > "$1"; tollgate label set system_u:object_r:secret_t:s0 "$1" || exit 4; }
as_audited() { tollgate run --context system_u:system_r:audited_t:s0 -- "$@"; }
permissive() { tollgate mode permissive; }
say() { sleep 1.5; echo "== json"; tollgate audit --json; echo "== end"; }
enforce() { tollgate enforce /policy "$@" || exit 3; }
"#;

fn policy(scratch: &Scratch) -> PathBuf {
    machine::policy(scratch, "policy", &[own_part("60-network"), source("tests/policies/audited.cil")])
}

/// Runs a shell script in a guest that has the policy.
fn in_guest(scratch: &Scratch, kernel: &str, more: &str, script: &str) -> Ended {
    let script = format!("{PLACES}{START}{script}");
    let machine = Machine::new(scratch, kernel, "bpf", TIMEOUT).option(&["--append", more]);
    let this = std::env::current_exe().unwrap();
    machine.file(&policy(scratch), "/policy").file(&this, "/tests").run(&["sh", "-c", &script]).with(0)
}

/// The output of `tollgate audit --json`.
fn entries(ended: &Ended) -> Vec<Entry> {
    let json = ended.stdout.split_once("== json\n").unwrap().1.split_once("== end").unwrap().0;
    json.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn denials(entries: &[Entry]) -> Vec<&Denial> {
    let mut denials = Vec::new();
    for entry in entries {
        if let Entry::Avc(denial) = entry {
            denials.push(denial);
        }
    }
    denials
}

/// One act for each kind of object in a record.
const ACTS: &str = r"
secret /deep/er/secret
mount -t tmpfs none /deep/mnt; mkdir /deep/mnt/in; secret /deep/mnt/in/secret
long=/deep; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do long=$long/0123456789; done
mkdir -p $long; secret $long/secret
mkdir -p /deep/jail/bin; cp -r /bin/. /deep/jail/bin; cp -r /lib* /deep/jail 2>/dev/null; secret /deep/jail/secret
secret '/deep/two words'
secret /deep/gone; exec 3< /deep/gone; rm /deep/gone
mkdir /deep/rmdir
secret /deep/dontaudit
{
as_audited dd if=/dev/null of=/deep/er/secret
as_audited stat /deep/mnt/in/secret
as_audited stat $long/secret
as_audited chroot /deep/jail /bin/busybox stat /secret
as_audited stat '/deep/two words'
as_audited stat -L /proc/self/fd/3
as_audited kill -0 1
as_audited ifconfig lo up
as_audited rmdir /deep/rmdir
as_audited blockdev --getsz /deep/er/secret
as_audited mount -t nothing none /deep/er
as_audited unlink /deep/dontaudit; [ -e /deep/dontaudit ] || exit 5
export TOLLGATE_TEST_MAP=/deep/er/secret
as_audited /tests --exact $TEST
permissive
as_audited /tests --exact $TEST
for i in 1 2 3; do
    as_audited dd if=/dev/null of=/deep/er/secret
    as_audited stat /deep/mnt/in/secret
done
} >/dev/null 2>&1
";

const TELL: &str = r"
say
echo '== log'; cat /var/log/tollgate/audit.log; dmesg | grep 'audit: type=1107' || true
";

/// The objects of the acts' records, in their order; in permissive mode once each.
const TOLD: [&str; 18] = [
    "denied  { write } for  pid=PID comm=\"dd\" name=\"secret\" dev=\"tmpfs\" ino=INO scontext=A tcontext=S tclass=file permissive=0",
    "denied  { getattr } for  pid=PID comm=\"stat\" path=\"/deep/mnt/in/secret\" dev=\"tmpfs\" ino=INO scontext=A tcontext=S tclass=file permissive=0",
    "denied  { getattr } for  pid=PID comm=\"stat\" path=\"CUT/0123456789/secret\" dev=\"tmpfs\" ino=INO scontext=A tcontext=S tclass=file permissive=0",
    "denied  { getattr } for  pid=PID comm=\"busybox\" path=\"/secret\" dev=\"tmpfs\" ino=INO scontext=A tcontext=S tclass=file permissive=0",
    "denied  { getattr } for  pid=PID comm=\"stat\" path=2F646565702F74776F20776F726473 dev=\"tmpfs\" ino=INO scontext=A tcontext=S tclass=file permissive=0",
    "denied  { getattr } for  pid=PID comm=\"stat\" path=2F646565702F676F6E65202864656C6574656429 dev=\"tmpfs\" ino=INO scontext=A tcontext=S tclass=file permissive=0",
    "denied  { signull } for  pid=PID comm=\"kill\" opid=1 ocomm=\"init\" scontext=A tcontext=M tclass=process permissive=0",
    "denied  { net_admin } for  pid=PID comm=\"ifconfig\" capability=12  scontext=A tcontext=A tclass=capability permissive=0",
    "granted  { rmdir } for  pid=PID comm=\"rmdir\" name=\"rmdir\" dev=\"tmpfs\" ino=INO scontext=A tcontext=F tclass=dir",
    "denied  { ioctl } for  pid=PID comm=\"blockdev\" path=\"/deep/er/secret\" dev=\"tmpfs\" ino=INO ioctlcmd=0x1272 scontext=A tcontext=S tclass=file permissive=0",
    "denied  { module_request } for  pid=PID comm=\"mount\" kmod=\"fs-nothing\" scontext=A tcontext=M tclass=system permissive=0",
    "denied  { execmem } for  pid=PID comm=\"audit_guests::t\" scontext=A tcontext=A tclass=process permissive=0",
    "denied  { execheap } for  pid=PID comm=\"audit_guests::t\" scontext=A tcontext=A tclass=process permissive=0",
    "denied  { execmem } for  pid=PID comm=\"audit_guests::t\" scontext=A tcontext=A tclass=process permissive=1",
    "denied  { execute } for  pid=PID comm=\"audit_guests::t\" path=\"/deep/er/secret\" dev=\"tmpfs\" ino=INO scontext=A tcontext=S tclass=file permissive=1",
    "denied  { execheap } for  pid=PID comm=\"audit_guests::t\" scontext=A tcontext=A tclass=process permissive=1",
    "denied  { write } for  pid=PID comm=\"dd\" name=\"secret\" dev=\"tmpfs\" ino=INO scontext=A tcontext=S tclass=file permissive=1",
    "denied  { getattr } for  pid=PID comm=\"stat\" path=\"/deep/mnt/in/secret\" dev=\"tmpfs\" ino=INO scontext=A tcontext=S tclass=file permissive=1",
];

const RULES: [&str; 5] = [
    "allow audited_t secret_t:file { execute getattr ioctl write };",
    "allow audited_t self:process { execheap execmem };",
    "allow audited_t self:capability net_admin;",
    "allow audited_t unconfined_t:process signull;",
    "allow audited_t kernel_t:system module_request;",
];

/// A record's text without what differs from run to run.
fn blank(text: &str) -> String {
    let blank = |word: &str| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let value = match (key, value) {
            ("pid", _) => "PID",
            ("ino", _) => "INO",
            (_, "system_u:system_r:audited_t:s0") => "A",
            (_, "system_u:object_r:secret_t:s0") => "S",
            ("tcontext", value) if value.contains(":tmpfs_t:") => "F",
            ("tcontext", value) if value.contains(":unconfined_t:") || value.contains(":kernel_t:") => "M",
            ("path", value) if value.contains("/0123456789/0123456789/") => "\"CUT/0123456789/secret\"",
            _ => return word.to_owned(),
        };
        format!("{key}={value}")
    };
    text.split(' ').map(blank).collect::<Vec<_>>().join(" ").replacen("avc:  ", "", 1)
}

/// The records as auditd writes them. Without auditd the kernel prints them, behind another head.
fn records(ended: &Ended) -> String {
    let log = ended.stdout.split_once("== log\n").unwrap().1;
    let record = |line: &str| match line.split_once("audit: type=1107 ") {
        Some((_, rest)) => format!("type=USER_AVC msg={rest}\n"),
        None => format!("{line}\n"),
    };
    log.lines().map(record).collect()
}

fn tells_each_object(kernel: &str, more: &str, audit: bool) {
    let scratch = Scratch::new();
    let acts = format!("TEST={}\nenforce\n{ACTS}{TELL}", name(tells_what_selinux_tells));
    let ended = in_guest(&scratch, kernel, more, &acts);
    let entries = entries(&ended);
    let told: Vec<String> = denials(&entries).iter().map(|denial| blank(&denial.to_string())).collect();
    assert_eq!(told, TOLD, "{}{}", ended.stdout, ended.stderr);
    let records = records(&ended);
    assert_eq!(ended.stdout.contains("audit: type=1107"), audit, "{}", ended.stdout);
    for denial in denials(&entries) {
        assert!(records.contains(&format!("msg='{denial} exe=")), "no record of {denial}:\n{records}");
    }
    let log = scratch.file("log", &records);
    assert_eq!(audit2allow(&scratch, &scratch.path("policy"), &log).len(), RULES.len(), "{records}");
    for rule in audit2allow(&scratch, &scratch.path("policy"), &log) {
        assert!(RULES.contains(&rule.as_str()), "{rule}");
    }
    let found = ausearch(&scratch, &log, &["-o", "secret_t", "--raw"]).with(0).stdout;
    assert_eq!(found.lines().count(), 10, "{found}");
}

#[test]
fn tells_each_object_through_the_kernels_audit() {
    tells_each_object("6.1", "audit=1", true);
    if cfg!(feature = "long") {
        tells_each_object("6.18", "audit=1", true);
    }
}

/// `tests/audit.rs` reads such files quickly; the storms below are logged in one.
#[test]
#[cfg(feature = "long")]
fn tells_each_object_in_a_file_where_the_kernel_has_no_audit() {
    tells_each_object("6.1", "audit=0", false);
}

/// Gives a file of a SELinux guest its label.
fn label(path: &OsStr) {
    let path = CString::new(path.as_bytes()).unwrap();
    let label = c"system_u:object_r:secret_t:s0";
    // SAFETY: both strings end in NUL, and the value is as long as is said.
    let result = unsafe {
        let value = label.to_bytes_with_nul();
        libc::setxattr(path.as_ptr(), c"security.selinux".as_ptr(), value.as_ptr().cast(), value.len(), 0)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Maps a file, and changes the heap, so that what is written there may be executed. Denials are what is looked at.
fn map(path: &OsStr) {
    let file = File::open(path).unwrap();
    let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // SAFETY: the mapping is new, and nobody uses the page that is added to the heap; it keeps its content.
    unsafe {
        libc::mmap(std::ptr::null_mut(), 4096, all, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
        let heap = libc::sbrk(3 * 4096).addr().next_multiple_of(4096);
        libc::mprotect(std::ptr::without_provenance_mut(heap), 4096, all);
    }
}

/// SELinux is the oracle of a record's text. It does not report the target of a signal, and has all of a long path.
#[test]
fn tells_what_selinux_tells() {
    if let Some(path) = std::env::var_os("TOLLGATE_TEST_LABEL") {
        return label(&path);
    }
    if let Some(path) = std::env::var_os("TOLLGATE_TEST_MAP") {
        return map(&path);
    }
    let scratch = Scratch::new();
    let (built, image) = (policy(&scratch), scratch.path("image"));
    scratch.run(&["policy", "export", word(&built), "--image", word(&image)]).with(0);
    let (this, script) = (
        std::env::current_exe().unwrap(),
        format!("TEST={}\n{PLACES}{START_SELINUX}{ACTS}dmesg", name(tells_what_selinux_tells)),
    );
    let machine = Machine::new(&scratch, "6.1", "selinux", TIMEOUT).option(&["--append", "audit=1 enforcing=0"]);
    let ended = machine.file(&image, "/image").file(&this, "/tests").run(&["sh", "-c", &script]).with(0);
    let audited = |line: &&str| line.contains("avc:  ") && line.contains("scontext=system_u:system_r:audited_t:");
    let text = |line: &str| blank(line.split_once("): ").unwrap().1);
    let told: Vec<String> = ended.stdout.lines().filter(audited).map(text).collect();
    let ours: Vec<String> = TOLD.iter().map(|text| text.replace(" opid=1 ocomm=\"init\"", "")).collect();
    assert_eq!(told, ours, "{}{}", ended.stdout, ended.stderr);
}

/// How many denials the log represents, and how many lines it has.
fn accounted(entries: &[Entry]) -> (u64, usize) {
    let one = |entry: &Entry| match entry {
        Entry::Avc(Denial { repeated: 0, .. }) => 1,
        Entry::Avc(Denial { repeated, .. }) => *repeated,
        Entry::Lost(Lost { count, .. }) => *count,
        Entry::Load(_) => 0,
    };
    (entries.iter().map(one).sum(), entries.len())
}

/// A shell that opens a secret file this often.
const STORM: &str = "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); true >> /deep/er/secret; done";

#[test]
#[ignore = "takes long: make test-rest"]
fn counts_each_denial_of_a_storm() {
    let scratch = Scratch::new();
    let script =
        format!("enforce --audit-limit 200\nsecret /deep/er/secret\nas_audited sh -c '{STORM}' 2>/dev/null\nsay");
    let ended = in_guest(&scratch, "6.1", "audit=0", &script);
    let entries = entries(&ended);
    let (count, lines) = accounted(&entries);
    assert_eq!(count, 5000, "{}", ended.stdout);
    assert!(lines < 200, "{lines} lines");
    let limited = |entry: &Entry| matches!(entry, Entry::Lost(Lost { reason: Reason::KernelLimit, .. }));
    assert!(entries.iter().any(limited), "{}", ended.stdout);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn tells_after_a_restart_what_was_denied_without_a_daemon() {
    let scratch = Scratch::new();
    let script = format!(
        "enforce --audit-limit 100000\nsecret /deep/er/secret\n\
         as_audited sh -c 'read wait; {STORM}; echo done >&2' < /dev/zero 2>/storm &\n\
         exec 4<> /begin\n",
    );
    // The storm begins after the daemon has ended, and is over when the next one starts.
    let script = script.replace("< /dev/zero", "< /begin").replace("secret /deep", "mkfifo /begin\nsecret /deep");
    let script = format!(
        "{script}sleep 2\nkill -9 $(cat /run/tollgate/lock)\necho >&4\n\
         until grep -q done /storm; do sleep 0.2; done\nenforce\nsay"
    );
    let ended = in_guest(&scratch, "6.1", "audit=0", &script);
    let entries = entries(&ended);
    assert_eq!(accounted(&entries).0, 5000, "{}{}", ended.stdout, ended.stderr);
    let full = |entry: &Entry| matches!(entry, Entry::Lost(Lost { reason: Reason::RingBuffer, .. }));
    assert!(entries.iter().any(full), "{}", ended.stdout);
}
