//! Tests whose part in a guest is the test program again, with a domain for each process that it forks. The tests of a file
//! share guests, because a boot and a start of enforcement cost more than most of them. Each is a process in the guest, one
//! after another in the order of the file, with a deadline of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::CString,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use tollgate_abi::enforcer::{TG_ATTRIBUTE_CURRENT, TG_PRCTL};
use tollgate_enforcer::{
    contexts::Sid,
    enforcer::{Enforcer, Options},
    programs::{self, Pins},
};
use tollgate_policy::built::Built;

use crate::program::{
    Scratch,
    guests::kernels,
    machine::{Machine, build, source},
    steps::{Step, step, steps},
    word,
};

/// This variable is set where the guest's part of tests runs.
pub(crate) const INSIDE: &str = "TOLLGATE_TEST_IN_GUEST";

/// The time limit, in seconds, for the boot of a guest and the start of enforcement in it, on a busy machine.
const START_TIMEOUT: u32 = 600;

/// Removes everything that the test before has left, except enforcement and its daemon: processes and mounts; the image is
/// new.
const CLEAN: &str = "\
clean() {
    killall -q -9 tests; cd /
    for place in /over /srv /other /memory /later /many; do while umount $place 2>/dev/null; do :; done; done
    rm -rf /image /memory /later /other /many; cp /pristine /image
}
";

/// What tests need of their shared guests, besides an ext4 image `/image`, and the directories `/srv` and `/over`.
pub(crate) struct Guests<'g> {
    pub(crate) kernels: &'g [&'static str],
    /// Built policies: the files of each, and its path in the guest.
    pub(crate) policies: &'g [(&'g [PathBuf], &'g str)],
    /// Other files, with their paths in the guest.
    pub(crate) files: &'g [(&'g Path, &'g str)],
    pub(crate) processors: u32,
    /// The time limit of each test, in seconds.
    pub(crate) timeout: u32,
    /// Whether the tests share a file system at `/srv`, which the first of them mounts. Otherwise each finds a machine
    /// without it.
    pub(crate) share_srv: bool,
    /// The names of the tests, in the order in which they run.
    pub(crate) tests: &'g [&'static str],
}

/// The results of the tests in guests: for each kernel, of each test.
pub(crate) struct Played(Vec<(&'static str, BTreeMap<String, Step>)>);

/// A file of tests/policies.
pub(crate) fn policy(name: &str) -> PathBuf {
    source("tests/policies").join(name)
}

/// A test's name in the test program, for `--exact`: the path of its function, without the program's.
pub(crate) fn name<T: Fn()>(_test: T) -> &'static str {
    std::any::type_name::<T>().split_once("::").unwrap().1
}

/// Whether this is the guest's part.
pub(crate) fn is_guest() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Whether this run of the test program includes a test.
fn is_wanted(test: &str) -> bool {
    is_chosen(test, ignored().contains(test), env::args().skip(1))
}

/// The tests that `make test` leaves to `make test-rest`.
fn ignored() -> &'static BTreeSet<String> {
    static IGNORED: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let listed = Command::new(env::current_exe().unwrap()).args(["--list", "--ignored"]).output().unwrap();
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        let text = String::from_utf8(listed.stdout).unwrap();
        text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
    });
    &IGNORED
}

/// Whether a command line of libtest chooses a test: one of its filters is part of the name, or there are none, no skipped
/// word is part of it, and it is not ignored unless the command line says so.
fn is_chosen(test: &str, ignored: bool, mut words: impl Iterator<Item = String>) -> bool {
    const WITH_VALUE: [&str; 5] = ["--test-threads", "--logfile", "--color", "--format", "--shuffle-seed"];
    let (mut filters, mut skipped, mut runs) = (Vec::new(), Vec::new(), !ignored);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--include-ignored" => runs = true,
            "--ignored" => runs = ignored,
            "--skip" => skipped.extend(words.next()),
            option if WITH_VALUE.contains(&option) => drop(words.next()),
            option if option.starts_with('-') => {}
            _ => filters.push(word),
        }
    }
    let holds = |part: &String| test.contains(part.as_str());
    runs && !skipped.iter().any(holds) && (filters.is_empty() || filters.iter().any(holds))
}

#[test]
fn takes_no_option_of_a_command_line_for_a_filter() {
    let words = |line: &'static str| line.split_whitespace().map(str::to_owned);
    let chosen = |line| is_chosen("enforcer_labels::keeps", false, words(line));
    assert!(chosen("") && chosen("--test-threads 256 --skip cli:: --skip page::") && chosen("labels --nocapture"));
    assert!(!chosen("cli:: --test-threads 1") && !chosen("--skip enforcer_labels") && !chosen("--ignored"));
    let ignored = |line| is_chosen("enforcer_labels::keeps", true, words(line));
    assert!(!ignored("") && ignored("--include-ignored labels") && ignored("--ignored") && !ignored("--ignored cli::"));
}

impl Guests<'_> {
    /// Runs the guest's part of the tests in a guest of each kernel.
    pub(crate) fn play(&self, scratch: &Scratch) -> Played {
        let image = scratch.path("image");
        File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let made = Command::new("/sbin/mke2fs").args(["-q", "-t", "ext4", word(&image)]).status().unwrap();
        assert!(made.success());
        let this = env::current_exe().unwrap();
        let numbers = 0..self.policies.len();
        let built: Vec<PathBuf> = numbers
            .zip(self.policies)
            .map(|(number, (files, _))| build(scratch, &format!("built-{number}"), files, &[]))
            .collect();
        let policies = built.iter().zip(self.policies).map(|(built, (_, guest))| (built.as_path(), *guest));
        let files: Vec<_> = [(image.as_path(), "/pristine"), (&this, "/tests")]
            .into_iter()
            .chain(policies)
            .chain(self.files.iter().copied())
            .collect();
        let script = scratch.file("script", &self.script());
        let play = |kernel: &'static str| {
            let count = u32::try_from(self.tests.len()).unwrap();
            let machine = Machine::new(scratch, kernel, "bpf", self.timeout * count + START_TIMEOUT);
            let machine = machine.processors(self.processors).modules(&["loop", "overlay"]);
            let machine = files.iter().fold(machine, |machine, (host, guest)| machine.file(host, guest));
            (kernel, steps(&machine.file(&script, "/script").run(&["sh", "/script"]).with(0).stdout))
        };
        Played(kernels(self.kernels).into_iter().map(play).collect())
    }

    fn script(&self) -> String {
        let prepare = format!(
            "grep -q ' /sys/fs/bpf ' /proc/mounts || mount -t bpf none /sys/fs/bpf\nmkdir -p /run /srv /over\n\
             mount -t tmpfs none /run\nexport {INSIDE}=1\n{CLEAN}clean\n"
        );
        let one = |test: &&&str| {
            let line = format!(
                "timeout -s KILL {} /tests --exact {test} --include-ignored --nocapture --test-threads 1",
                self.timeout
            );
            // The last line of the output may lack its line break.
            let clean = if self.share_srv { "" } else { "clean\n" };
            format!("{clean}{}", step(test, &format!("{line}; ended=$?; echo; (exit $ended)")))
        };
        prepare + &self.tests.iter().filter(|test| is_wanted(test)).map(|test| one(&test)).collect::<String>()
    }
}

impl Played {
    /// Fails unless the guest's part of a test has passed on all kernels.
    #[track_caller]
    pub(crate) fn assert_passed(&self, test: impl Fn()) {
        let test = name(test);
        for (kernel, steps) in &self.0 {
            let step = steps.get(test).unwrap_or_else(|| panic!("{test} is not among the tests that its file lists"));
            println!("kernel {kernel}\n{}", step.text);
            step.is(0, &["1 passed"]);
        }
    }
}

/// Whether an earlier test has started enforcement.
pub(crate) fn is_enforced() -> bool {
    programs::pinned(&Pins::default())
}

/// The enforcement that an earlier test has left, with labels for what was mounted since; or enforcement of this policy,
/// started now.
pub(crate) fn enforcer(options: Options, policy: &str) -> Enforcer {
    if !is_enforced() {
        return Enforcer::start(options, Built::open(Path::new(policy)).unwrap()).unwrap();
    }
    let mut enforcer = Enforcer::adopt(options).unwrap();
    assert_eq!(enforcer.catch_up(), [""; 0]);
    enforcer
}

pub(crate) fn sh(line: &str) {
    let ran = Command::new("sh").args(["-ec", line]).output().unwrap();
    assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Drops unused inodes of ext4 from memory.
pub(crate) fn forget_inodes() {
    sh("sync; echo 3 > /proc/sys/vm/drop_caches");
}

/// Opens a file by `O_PATH`; a link itself is opened.
pub(crate) fn by_path(path: impl AsRef<Path>) -> OwnedFd {
    let text = CString::new(path.as_ref().as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends in NUL.
    let file = unsafe { libc::open(text.as_ptr(), libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC) };
    assert!(file >= 0, "{}: {}", path.as_ref().display(), io::Error::last_os_error());
    // SAFETY: the kernel has just given it to us.
    unsafe { OwnedFd::from_raw_fd(file) }
}

/// The errno of an act; 0 if it succeeded.
pub(crate) fn errno<T>(result: io::Result<T>) -> u32 {
    result.map_or_else(|error| error.raw_os_error().unwrap().cast_unsigned(), |_| 0)
}

/// The errno of an attempt to open a file.
pub(crate) fn opened(path: impl AsRef<Path>) -> u32 {
    errno(File::open(path))
}

/// Closes the descriptors of the enforcer, which started in the parent: a domain may not take them along.
fn drop_held() {
    // By number: an open folder would have the credentials that only this thread may have.
    for number in 3..1024 {
        if is_held(number) {
            // SAFETY: this process, which was just forked, uses none of them.
            unsafe { libc::close(number) };
        }
    }
}

/// Whether the enforcer keeps this descriptor.
pub(crate) fn is_held(number: i32) -> bool {
    let held = ["/sys/fs/bpf", "/run/tollgate", "/etc/tollgate", "/var/lib/tollgate"];
    let of = std::fs::read_link(format!("/proc/self/fd/{number}"));
    of.is_ok_and(|of| held.iter().any(|path| of.starts_with(path)) || of.ends_with("mountinfo"))
}

/// The calling thread enters a domain.
pub(crate) fn enter(domain: Sid) {
    drop_held();
    // SAFETY: this prctl takes numbers only.
    let result = unsafe { libc::prctl(TG_PRCTL.cast_signed(), TG_ATTRIBUTE_CURRENT, domain, 0, 0) };
    let error = io::Error::last_os_error();
    assert!(result == -1 && error.raw_os_error() == Some(libc::EALREADY), "{result} {error}");
}

/// A process in a domain, and the numbers that it writes when it ends.
pub(crate) struct Confined {
    pub(crate) process: libc::pid_t,
    pub(crate) told: UnixStream,
}

impl Confined {
    /// Starts a process that does `act`, and writes what that returns.
    pub(crate) fn start<const N: usize>(domain: Sid, act: impl FnOnce(&mut UnixStream) -> [u32; N]) -> Self {
        let (told, mut tells) = UnixStream::pair().unwrap();
        // SAFETY: the child, of one thread, leaves by _exit.
        let process = unsafe { libc::fork() };
        assert!(process >= 0);
        if process == 0 {
            enter(domain);
            let numbers = act(&mut tells);
            let written = numbers.iter().all(|number| tells.write_all(&number.to_ne_bytes()).is_ok());
            // SAFETY: nothing is to be done at the end.
            unsafe { libc::_exit(i32::from(!written)) };
        }
        Self { process, told }
    }

    pub(crate) fn number(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.told.read_exact(&mut bytes).unwrap();
        u32::from_ne_bytes(bytes)
    }

    /// Waits for its end.
    pub(crate) fn numbers<const N: usize>(mut self) -> [u32; N] {
        let numbers = std::array::from_fn(|_| self.number());
        let mut status = 0;
        // SAFETY: the child is ours, the status is written before the call returns.
        assert_eq!(unsafe { libc::waitpid(self.process, &raw mut status, 0) }, self.process);
        assert_eq!(status, 0);
        numbers
    }
}
