//! Labels that the kernel gives by itself, in guests: to what is made, before anybody else can open it; to what has no
//! place to keep one; to what overlayfs shows.
//!
//! The part in the guest is this program again: it starts the enforcer in its own process. Kernels are needed, from the cache
//! or a network, and mke2fs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod program;

use std::{
    env,
    ffi::CString,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, FromRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::OpenOptionsExt, net::UnixStream},
    },
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use program::{Scratch, guests::take, word};
use tollgate_abi::enforcer::{TG_ATTRIBUTE_CURRENT, TG_FAILED_LABELS_FULL, TG_PRCTL};
use tollgate_enforcer::{
    contexts::Sid,
    enforcer::{Enforcer, Options},
    programs,
};
use tollgate_policy::built::Built;

const IN_GUEST: &str = "TOLLGATE_TEST_IN_GUEST";
const KERNELS: [&str; 2] = ["6.1", "6.18"];
/// How long makers and readers race, in each place.
const RACE: Duration = Duration::from_secs(3);

/// Runs the test of that name in guests of two processors, where `/image` is an empty ext4 and `/built` the policy.
fn in_guests(test: &str) {
    let scratch = Scratch::new();
    let (built, image) = (scratch.path("built"), scratch.path("image"));
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/policies/labelling.cil");
    scratch.run(&["policy", "build", word(&policy), "-o", word(&built)]).with(0);
    File::create(&image).unwrap().set_len(32 << 20).unwrap();
    let made = Command::new("/sbin/mke2fs").args(["-q", "-t", "ext4", word(&image)]).status().unwrap();
    assert!(made.success());
    let this = env::current_exe().unwrap();
    let files = [(&built, "/built"), (&image, "/image"), (&this, "/tests")];
    let files: Vec<String> = files.map(|(host, guest)| format!("--file={}:{guest}", word(host))).to_vec();
    let line = format!(
        "mount | grep -q ' type bpf ' || mount -t bpf none /sys/fs/bpf; mkdir -p /run /srv /over; mount -t tmpfs none /run; \
         export {IN_GUEST}=1; exec /tests --exact {test} --nocapture --test-threads 1"
    );
    for kernel in KERNELS {
        let mut arguments = vec!["vm", "run", "--kernel", kernel, "--lsm", "bpf", "--cpus", "2"];
        arguments.extend(["--append", "rcupdate.rcu_expedited=1"]);
        arguments.extend(["--module", "loop", "--module", "overlay"]);
        arguments.extend(files.iter().map(String::as_str));
        arguments.extend(["--", "sh", "-c", &line]);
        let _place = take(1);
        let ended = scratch.run(&arguments).with(0);
        println!("kernel {kernel}\n{}", ended.stdout);
        assert!(ended.stdout.contains("1 passed"), "{kernel}: {}{}", ended.stdout, ended.stderr);
    }
}

fn is_guest() -> bool {
    env::var_os(IN_GUEST).is_some()
}

fn sh(line: &str) {
    let ran = Command::new("sh").args(["-ec", line]).output().unwrap();
    assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Starts enforcement, with an ext4 at `/srv`; but for the hooks of these names.
fn start(without: &[&str]) -> Enforcer {
    sh("mount -o loop /image /srv; mkdir -p /srv/low/place /srv/up /srv/work /srv/place /srv/plain");
    let mut hooks = Vec::new();
    if !without.is_empty() {
        hooks = programs::hooks().unwrap();
        hooks.retain(|hook| !without.contains(&hook.as_str()));
    }
    let options = Options { hooks, ..Options::default() };
    let mut enforcer = Enforcer::start(options, Built::open(Path::new("/built")).unwrap()).unwrap();
    for place in ["/srv/place", "/srv/low/place", "/srv/up", "/srv/work"] {
        set(&mut enforcer, place, "place_t");
    }
    enforcer
}

/// Shows /srv/low, with /srv/up over it, as /over.
fn mount_overlay() {
    sh("mount -t overlay -o lowerdir=/srv/low,upperdir=/srv/up,workdir=/srv/work none /over");
}

/// Opens a file by `O_PATH`, be it a link.
fn by_path(path: &str) -> OwnedFd {
    let text = CString::new(Path::new(path).as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends in NUL.
    let file = unsafe { libc::open(text.as_ptr(), libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC) };
    assert!(file >= 0, "{path}: {}", io::Error::last_os_error());
    // SAFETY: the kernel has just given it to us.
    unsafe { OwnedFd::from_raw_fd(file) }
}

fn set(enforcer: &mut Enforcer, path: &str, type_: &str) {
    let sid = enforcer.intern(&format!("u:object_r:{type_}:s0")).unwrap();
    enforcer.set_label(by_path(path).as_fd(), sid).unwrap();
}

/// The type of a file's label.
fn type_of(enforcer: &mut Enforcer, path: &str) -> String {
    let sid = enforcer.label(by_path(path).as_fd()).unwrap();
    enforcer.learn();
    enforcer.contexts().text(sid).split(':').nth(2).unwrap_or_default().to_owned()
}

#[track_caller]
fn types(enforcer: &mut Enforcer, expected: &[(&str, &str)]) {
    for (path, type_) in expected {
        assert_eq!(type_of(enforcer, path), *type_, "{path}");
    }
}

fn domain(enforcer: &mut Enforcer, type_: &str) -> Sid {
    enforcer.intern(&format!("u:r:{type_}:s0")).unwrap()
}

/// The calling thread enters a domain.
fn enter(domain: Sid) {
    // SAFETY: this prctl takes numbers only.
    let result = unsafe { libc::prctl(TG_PRCTL.cast_signed(), TG_ATTRIBUTE_CURRENT, domain, 0, 0) };
    let error = io::Error::last_os_error();
    assert!(result == -1 && error.raw_os_error() == Some(libc::EALREADY), "{result} {error}");
}

/// A process in a domain, and what it wrote when it ended: numbers.
struct Confined {
    process: libc::pid_t,
    told: UnixStream,
}

impl Confined {
    /// Starts one that does `act`, and tells what that returns.
    fn start<const N: usize>(domain: Sid, act: impl FnOnce(&mut UnixStream) -> [u32; N]) -> Self {
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

    fn number(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.told.read_exact(&mut bytes).unwrap();
        u32::from_ne_bytes(bytes)
    }

    /// Waits for its end.
    fn numbers<const N: usize>(mut self) -> [u32; N] {
        let numbers = std::array::from_fn(|_| self.number());
        let mut status = 0;
        // SAFETY: the child is ours, the status is written before the call returns.
        assert_eq!(unsafe { libc::waitpid(self.process, &raw mut status, 0) }, self.process);
        assert_eq!(status, 0);
        numbers
    }
}

/// What came of an attempt to open: the error's number, 0 for none.
fn opened(path: &str) -> u32 {
    match File::open(path) {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap().cast_unsigned(),
    }
}

/// The errno with which a domain makes, or does not make, a file.
fn made(domain: Sid, path: &str) -> u32 {
    let confined = Confined::start(domain, |_| {
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        [made.map_or_else(|error| error.raw_os_error().unwrap().cast_unsigned(), |_| 0)]
    });
    confined.numbers::<1>()[0]
}

/// Makes and removes a file over and over, while one domain opens it that may, and one that may open anything else.
fn race(enforcer: &mut Enforcer, place: &str) {
    let path = format!("{place}/raced");
    let until = Instant::now() + RACE;
    let [maker, reader, spy] = ["maker_t", "reader_t", "spy_t"].map(|type_| domain(enforcer, type_));
    let opens = |_: &mut UnixStream| {
        let mut counts = [0; 3];
        while Instant::now() < until {
            match opened(&path) {
                0 => counts[0] += 1,
                errno if errno == libc::EACCES.cast_unsigned() => counts[1] += 1,
                _ => counts[2] += 1,
            }
        }
        counts
    };
    let reader = Confined::start(reader, opens);
    let spy = Confined::start(spy, opens);
    let maker = Confined::start(maker, |_| {
        let mut made = 0;
        while Instant::now() < until {
            let new = OpenOptions::new().write(true).create_new(true).open(&path);
            if new.and_then(|_| fs::remove_file(&path)).is_err() {
                return [0];
            }
            made += 1;
        }
        [made]
    });
    let [made] = maker.numbers();
    let ([granted, refused, _], [leaked, denied, _]) = (reader.numbers(), spy.numbers());
    println!("{place}: {made} made, {granted} opened, {refused} refused; {leaked} leaked, {denied} denied");
    assert_eq!((refused, leaked), (0, 0), "{place}: some had no label when they were opened");
    assert!(made > 100 && granted > 10 && denied > 10, "{place}: too few met");
}

/// In memory, on ext4, over both.
fn race_everywhere(enforcer: &mut Enforcer) {
    sh("mkdir /memory; mount -t tmpfs none /memory; mkdir /memory/place");
    set(enforcer, "/memory/place", "place_t");
    mount_overlay();
    for place in ["/over/place", "/memory/place", "/srv/place"] {
        race(enforcer, place);
    }
}

#[test]
fn labels_new_files_before_anybody_else_can_open_them() {
    if !is_guest() {
        return in_guests("labels_new_files_before_anybody_else_can_open_them");
    }
    race_everywhere(&mut start(&[]));
}

#[test]
fn labels_new_files_in_time_where_the_kernel_announces_none() {
    if !is_guest() {
        return in_guests("labels_new_files_in_time_where_the_kernel_announces_none");
    }
    let enforcer = &mut start(&["inode_init_security"]);
    race_everywhere(enforcer);
    let maker = domain(enforcer, "maker_t");
    assert_eq!(made(maker, "/srv/place/kept"), 0);
    assert_eq!(nameless(maker, "/srv/place", "/srv/place/named"), 0);
    forget_inodes();
    types(enforcer, &[("/srv/place/kept", "made_t"), ("/srv/place/named", "made_t")]);
}

/// Nothing of ext4 stays in memory that is not in use.
fn forget_inodes() {
    sh("sync; echo 3 > /proc/sys/vm/drop_caches");
}

/// Makes a file without a name, and gives it one.
fn nameless(domain: Sid, directory: &str, path: &str) -> u32 {
    let confined = Confined::start(domain, |_| {
        let file = OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(directory);
        let linked = file.and_then(|file| {
            let from = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
            let [from, to] = [&from, path].map(|path| CString::new(path).unwrap());
            let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
            // SAFETY: both paths end in NUL.
            match unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), follow) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
        [linked.map_or_else(|error| error.raw_os_error().unwrap().cast_unsigned(), |()| 0)]
    });
    confined.numbers::<1>()[0]
}

#[test]
fn refuses_files_whose_labels_find_no_place() {
    if !is_guest() {
        return in_guests("refuses_files_whose_labels_find_no_place");
    }
    let enforcer = &mut start(&[]);
    let maker = domain(enforcer, "maker_t");
    sh("mkdir /memory; mount -t tmpfs none /memory; mkdir /memory/place; echo > /srv/plain/old");
    set(enforcer, "/memory/place", "place_t");
    let labels = MapHandle::from_pinned_path(enforcer.options().pins.map("labels")).unwrap();
    fill(&labels);
    let full = libc::ENOSPC.cast_unsigned();
    let failures = enforcer.state().failures()[TG_FAILED_LABELS_FULL as usize];
    assert_eq!(made(maker, "/srv/place/x"), full);
    assert!(!Path::new("/srv/place/x").exists());
    assert_eq!(nameless(maker, "/srv/place", "/srv/place/named"), full);
    assert_eq!(fs::hard_link("/srv/plain/old", "/srv/plain/new").unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    assert!(enforcer.state().failures()[TG_FAILED_LABELS_FULL as usize] >= failures + 3);
    // What is labelled as its directory is, or never leaves memory, needs no place.
    assert_eq!(made(maker, "/srv/plain/x"), 0);
    assert_eq!(made(maker, "/memory/place/x"), 0);
    labels.delete(&key(0)).unwrap();
    assert_eq!(made(maker, "/srv/place/x"), 0);
    types(enforcer, &[("/srv/place/x", "made_t"), ("/memory/place/x", "made_t"), ("/srv/plain/x", "file_t")]);
}

/// The key of a label of no file.
fn key(number: u64) -> [u8; 16] {
    let mut key = [0xff; 16];
    key[..8].copy_from_slice(&number.to_ne_bytes());
    key
}

/// Fills the map of labels.
fn fill(labels: &MapHandle) {
    let (room, batch) = (u64::from(labels.max_entries()), 1 << 16);
    for first in (0..room).step_by(batch) {
        let keys: Vec<u8> = (first..room.min(first + batch as u64)).flat_map(key).collect();
        let values = vec![0; keys.len() / 2];
        // The last does not fit whole.
        let _ = labels.update_batch(&keys, &values, (keys.len() / 16) as u32, MapFlags::ANY, MapFlags::ANY);
    }
    assert!(labels.update(&[0xfe; 16], &[0; 8], MapFlags::ANY).is_err(), "the map is not full");
}

#[test]
fn labels_a_processs_files_in_proc_as_the_process_is() {
    if !is_guest() {
        return in_guests("labels_a_processs_files_in_proc_as_the_process_is");
    }
    let enforcer = &mut start(&[]);
    let [maker, reader, spy] = ["maker_t", "reader_t", "spy_t"].map(|type_| domain(enforcer, type_));
    let mut process = Confined::start(maker, |told| {
        let _ = told.write_all(&1u32.to_ne_bytes());
        let _ = told.read_exact(&mut [0]);
        enter(reader);
        let _ = told.write_all(&2u32.to_ne_bytes());
        let _ = told.read_exact(&mut [0]);
        []
    });
    assert_eq!(process.number(), 1);
    let (directory, descriptors) = (format!("/proc/{}", process.process), format!("/proc/{}/fd", process.process));
    let deep = format!("/proc/{}/task/{0}/net/unix", process.process);
    let lists = |path: &str| {
        let confined = Confined::start(spy, |_| [opened(path)]);
        confined.numbers::<1>()[0]
    };
    types(enforcer, &[(&directory, "maker_t"), (&descriptors, "maker_t"), (&deep, "proc_t"), ("/proc/stat", "proc_t")]);
    // The second is answered by what the first was remembered for.
    assert_eq!((lists(&directory), lists(&directory)), (0, 0));
    process.told.write_all(&[0]).unwrap();
    assert_eq!(process.number(), 2);
    assert_eq!(lists(&directory), libc::EACCES.cast_unsigned());
    types(enforcer, &[(&directory, "reader_t"), (&descriptors, "reader_t"), (&deep, "proc_t")]);
    process.told.write_all(&[0]).unwrap();
    process.numbers::<0>();
}

#[test]
fn keeps_labels_of_what_overlayfs_copies_and_replaces() {
    if !is_guest() {
        return in_guests("keeps_labels_of_what_overlayfs_copies_and_replaces");
    }
    let enforcer = &mut start(&[]);
    let maker = domain(enforcer, "maker_t");
    sh(
        "echo > /srv/low/copied; echo > /srv/low/place/replaced; mkdir /srv/low/place/tree; echo > /srv/low/place/tree/x",
    );
    set(enforcer, "/srv/low/copied", "made_t");
    set(enforcer, "/srv/low/place/tree/x", "file_t");
    mount_overlay();
    types(enforcer, &[("/over", "place_t"), ("/over/copied", "made_t"), ("/over/place/tree/x", "file_t")]);
    sh("echo more >> /over/copied; echo more >> /over/place/tree/x; rm /over/place/replaced");
    // Over what hides the removed one, made in the work directory.
    assert_eq!(made(maker, "/over/place/replaced"), 0);
    let expected = [
        ("/over/copied", "made_t"),
        ("/srv/up/copied", "made_t"),
        ("/over/place/tree/x", "file_t"),
        ("/srv/up/place/tree/x", "file_t"),
        ("/srv/up/place/tree", "place_t"),
        ("/over/place/replaced", "made_t"),
        ("/srv/up/place/replaced", "made_t"),
    ];
    types(enforcer, &expected);
    forget_inodes();
    types(enforcer, &expected);
    sh("umount /over");
    forget_inodes();
    mount_overlay();
    types(enforcer, &expected);
}
