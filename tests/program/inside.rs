//! Tests whose part in a guest is the test program again, with a domain for each process that it forks.

use std::{
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
};

use tollgate_abi::enforcer::{TG_ATTRIBUTE_CURRENT, TG_PRCTL};
use tollgate_enforcer::contexts::Sid;

use crate::program::{
    Scratch,
    guests::{KERNELS, kernels, take},
    word,
};

const INSIDE: &str = "TOLLGATE_TEST_IN_GUEST";

/// What a test needs of its guests, beside an ext4 image `/image`, and places `/srv` and `/over`.
pub(crate) struct Guests<'g> {
    /// Built policies: the files that each is of, and where it is in the guest.
    pub(crate) policies: &'g [(&'g [PathBuf], &'g str)],
    /// Other files, and where they are in the guest.
    pub(crate) files: &'g [(&'g Path, &'g str)],
    pub(crate) processors: &'g str,
    /// Seconds.
    pub(crate) timeout: u32,
}

/// A file of tests/policies.
pub(crate) fn policy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/policies").join(name)
}

/// A test's name as the test program knows it, for `--exact`: that of a function is its path, below the program's.
pub(crate) fn name<T: Fn()>(_test: T) -> &'static str {
    std::any::type_name::<T>().split_once("::").unwrap().1
}

/// Whether this is the guest's part.
pub(crate) fn is_guest() -> bool {
    env::var_os(INSIDE).is_some()
}

impl Guests<'_> {
    /// Runs the guest's part of a test in each guest, and prints what that printed.
    pub(crate) fn play(&self, scratch: &Scratch, test: impl Fn()) {
        self.play_on(KERNELS, scratch, test);
    }

    /// The same on kernels that the test says.
    pub(crate) fn play_on(&self, said: &[&'static str], scratch: &Scratch, test: impl Fn()) {
        let image = scratch.path("image");
        File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let made = Command::new("/sbin/mke2fs").args(["-q", "-t", "ext4", word(&image)]).status().unwrap();
        assert!(made.success());
        let this = env::current_exe().unwrap();
        let file = |host: &Path, guest: &str| format!("--file={}:{guest}", word(host));
        let mut files = vec![file(&image, "/image"), file(&this, "/tests")];
        files.extend(self.files.iter().map(|(host, guest)| file(host, guest)));
        for (number, (sources, guest)) in self.policies.iter().enumerate() {
            let built = scratch.path(&format!("built-{number}"));
            let words: Vec<&str> = sources.iter().map(|path| word(path)).collect();
            scratch.run(&[&["policy", "build"], &words[..], &["-o", word(&built)]].concat()).with(0);
            files.push(file(&built, guest));
        }
        let line = format!(
            "grep -q ' /sys/fs/bpf ' /proc/mounts || mount -t bpf none /sys/fs/bpf; mkdir -p /run /srv /over; \
             mount -t tmpfs none /run; export {INSIDE}=1; exec /tests --exact {} --nocapture --test-threads 1",
            name(test)
        );
        let timeout = self.timeout.to_string();
        for kernel in kernels(said) {
            let mut arguments = vec!["vm", "run", "--kernel", kernel, "--lsm", "bpf", "--cpus", self.processors];
            arguments.extend(["--timeout", &timeout, "--append", "rcupdate.rcu_expedited=1"]);
            arguments.extend(["--module", "loop", "--module", "overlay"]);
            arguments.extend(files.iter().map(String::as_str));
            arguments.extend(["--", "sh", "-c", &line]);
            let _place = take(1);
            let ended = scratch.run(&arguments).with(0);
            println!("kernel {kernel}\n{}", ended.stdout);
            assert!(ended.stdout.contains("1 passed"), "{kernel}: {}{}", ended.stdout, ended.stderr);
        }
    }
}

pub(crate) fn sh(line: &str) {
    let ran = Command::new("sh").args(["-ec", line]).output().unwrap();
    assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Nothing of ext4 stays in memory that is not in use.
pub(crate) fn forget_inodes() {
    sh("sync; echo 3 > /proc/sys/vm/drop_caches");
}

/// Opens a file by `O_PATH`, be it a link.
pub(crate) fn by_path(path: impl AsRef<Path>) -> OwnedFd {
    let text = CString::new(path.as_ref().as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends in NUL.
    let file = unsafe { libc::open(text.as_ptr(), libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC) };
    assert!(file >= 0, "{}: {}", path.as_ref().display(), io::Error::last_os_error());
    // SAFETY: the kernel has just given it to us.
    unsafe { OwnedFd::from_raw_fd(file) }
}

/// What came of an act: the error's number, 0 for none.
pub(crate) fn errno<T>(result: io::Result<T>) -> u32 {
    result.map_or_else(|error| error.raw_os_error().unwrap().cast_unsigned(), |_| 0)
}

/// What came of an attempt to open.
pub(crate) fn opened(path: impl AsRef<Path>) -> u32 {
    errno(File::open(path))
}

/// What the enforcer holds, which started in the process that this one was forked from, is not for a domain to take along.
fn drop_held() {
    let held = ["/sys/fs/bpf", "/run/tollgate", "/etc/tollgate", "/var/lib/tollgate"];
    // By number: a folder that was open would have the credentials that are to be this thread's alone.
    for number in 3..1024 {
        let of = std::fs::read_link(format!("/proc/self/fd/{number}"));
        if of.is_ok_and(|of| held.iter().any(|path| of.starts_with(path))) {
            // SAFETY: this process, which was just forked, uses none of them.
            unsafe { libc::close(number) };
        }
    }
}

/// The calling thread enters a domain.
pub(crate) fn enter(domain: Sid) {
    drop_held();
    // SAFETY: this prctl takes numbers only.
    let result = unsafe { libc::prctl(TG_PRCTL.cast_signed(), TG_ATTRIBUTE_CURRENT, domain, 0, 0) };
    let error = io::Error::last_os_error();
    assert!(result == -1 && error.raw_os_error() == Some(libc::EALREADY), "{result} {error}");
}

/// A process in a domain, and what it wrote when it ended: numbers.
pub(crate) struct Confined {
    pub(crate) process: libc::pid_t,
    pub(crate) told: UnixStream,
}

impl Confined {
    /// Starts one that does `act`, and tells what that returns.
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
