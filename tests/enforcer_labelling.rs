//! Labels that the kernel assigns by itself, in guests: to new files, before another process can open them; to files without
//! room for a label; to files of overlayfs.
//!
//! The part in the guest is this program again: it starts the enforcer in its own process. Kernels are needed, from the cache
//! or a network, and mke2fs.

use std::{
    ffi::CString,
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::AsFd,
        unix::{fs::OpenOptionsExt, net::UnixStream},
    },
    path::Path,
    sync::OnceLock,
    time::{Duration, Instant},
};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use tollgate_abi::enforcer::{TG_FAILED_LABELS_FULL, tg_label_value};
use tollgate_enforcer::{
    contexts::Sid,
    enforcer::{Enforcer, Options},
    programs,
};

use crate::program::{
    Scratch,
    guests::KERNELS,
    inside::{
        Confined, Guests, Played, by_path, enforcer, enter, errno, forget_inodes, is_guest, name, opened, policy, sh,
    },
};

/// How long creators and readers race, in each place.
const RACE: Duration = Duration::from_secs(3);
/// The greatest number of races.
const RACES: u32 = 20;

/// Runs tests in guests of two processors, where `/built` is the policy.
fn play(kernels: &[&'static str], tests: &[&'static str]) -> Played {
    let guests = Guests {
        kernels,
        policies: &[(&[policy("labelling.cil")], "/built")],
        files: &[],
        processors: 2,
        timeout: 200,
        share_srv: false,
        tests,
    };
    guests.play(&Scratch::new())
}

/// Fails unless a test has passed in guests that it shares with others.
fn played(test: impl Fn()) {
    static PLAYED: OnceLock<Played> = OnceLock::new();
    let tests = [
        name(labels_new_files_before_anybody_else_can_open_them),
        name(labels_a_processs_files_in_proc_as_the_process_is),
        name(keeps_labels_of_what_overlayfs_copies_and_replaces),
        // It leaves no room for other tests.
        name(refuses_files_whose_labels_find_no_place),
    ];
    PLAYED.get_or_init(|| play(KERNELS, &tests)).assert_passed(test);
}

/// Fails unless a test has passed in guests that start enforcement for it alone.
fn played_alone(kernels: &[&'static str], test: impl Fn()) {
    play(kernels, &[name(&test)]).assert_passed(test);
}

fn mount_ext4() {
    sh("mount -o loop /image /srv; mkdir -p /srv/low/place /srv/up /srv/work /srv/place /srv/plain");
}

/// Starts enforcement, with an ext4 at `/srv`, without the hooks of these names.
fn start(without: &[&str]) -> Enforcer {
    mount_ext4();
    enforce(without)
}

fn enforce(without: &[&str]) -> Enforcer {
    let mut hooks = Vec::new();
    if !without.is_empty() {
        hooks = programs::hooks().unwrap();
        hooks.retain(|hook| !without.contains(&hook.as_str()));
    }
    let options = Options { hooks, ..Options::default() };
    let mut enforcer = enforcer(options, "/built");
    for place in ["/srv/place", "/srv/low/place", "/srv/up", "/srv/work"] {
        set(&mut enforcer, place, "place_t");
    }
    enforcer
}

/// Shows /srv/low, with /srv/up over it, as /over.
fn mount_overlay() {
    sh("mount -t overlay -o lowerdir=/srv/low,upperdir=/srv/up,workdir=/srv/work none /over");
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

/// The errno with which a domain creates a file, or fails to.
fn made(domain: Sid, path: &str) -> u32 {
    let confined = Confined::start(domain, |_| [errno(OpenOptions::new().write(true).create_new(true).open(path))]);
    confined.numbers::<1>()[0]
}

/// Races until creators and readers have met often enough, because a loaded machine's processors may stand still for long.
fn race(enforcer: &mut Enforcer, place: &str) {
    let (mut made, mut granted, mut denied) = (0, 0, 0);
    for _ in 0..RACES {
        let met = race_once(enforcer, place);
        (made, granted, denied) = (made + met.0, granted + met.1, denied + met.2);
        if made > 100 && granted > 10 && denied > 10 {
            return;
        }
    }
    panic!("{place}: too few met: {made} made, {granted} opened, {denied} denied");
}

/// Creates and removes a file repeatedly, while a domain that may open it does, and one that may open everything else.
/// Returns how often it was created, opened, denied.
fn race_once(enforcer: &mut Enforcer, place: &str) -> (u32, u32, u32) {
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
    (made, granted, denied)
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
        return played(labels_new_files_before_anybody_else_can_open_them);
    }
    race_everywhere(&mut start(&[]));
}

/// The race of the test above, by the other way, which takes longer.
#[test]
#[cfg(feature = "long")]
fn labels_new_files_in_time_where_the_kernel_announces_none() {
    if !is_guest() {
        return played_alone(KERNELS, labels_new_files_in_time_where_the_kernel_announces_none);
    }
    let enforcer = &mut start(&["inode_init_security"]);
    race_everywhere(enforcer);
    let maker = domain(enforcer, "maker_t");
    assert_eq!(made(maker, "/srv/place/kept"), 0);
    assert_eq!(nameless(maker, "/srv/place", "/srv/place/named"), 0);
    // A process that creates an existing file finds it, and the file keeps its label.
    sh("echo > /srv/place/old");
    set(enforcer, "/srv/place/old", "place_t");
    forget_inodes();
    let finds = || OpenOptions::new().write(true).create(true).truncate(false).open("/srv/place/old");
    Confined::start(maker, |_| [errno(finds())]).numbers::<1>();
    types(enforcer, &[("/srv/place/old", "place_t")]);
    forget_inodes();
    types(enforcer, &[("/srv/place/kept", "made_t"), ("/srv/place/named", "made_t"), ("/srv/place/old", "place_t")]);
}

/// On kernels since 6.18 a failed fork frees the storage of the forking process, some time later.
#[test]
#[ignore = "takes long: make test-rest"]
fn labels_new_files_while_their_makers_forks_fail() {
    if !is_guest() {
        return played_alone(&["6.18"], labels_new_files_while_their_makers_forks_fail);
    }
    let enforcer = &mut start(&["inode_init_security"]);
    sh("chmod 777 /srv/place");
    // It creates files that it may not read; it may read files with the directory's label.
    let maker = Confined::start(domain(enforcer, "spy_t"), |_| make_while_forks_fail("/srv/place/new", 40));
    let [failed, made, leaked] = maker.numbers();
    println!("{failed} forks failed, {made} files made, {leaked} leaked");
    assert_eq!((failed, leaked), (40, 0));
    assert!(made > 0);
}

fn make_while_forks_fail(path: &str, rounds: u32) -> [u32; 3] {
    /// Longer than a grace period.
    const ROUND: Duration = Duration::from_millis(100);
    let none = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
    // SAFETY: the limits outlive the call.
    assert_eq!(unsafe { libc::setuid(1000) | libc::setrlimit(libc::RLIMIT_NPROC, &raw const none) }, 0);
    let [mut failed, mut made, mut leaked] = [0; 3];
    for _ in 0..rounds {
        let until = Instant::now() + ROUND;
        // SAFETY: a child, of one thread, leaves by _exit.
        match unsafe { libc::fork() } {
            // SAFETY: nothing is to be done at the end.
            0 => unsafe { libc::_exit(0) },
            child => failed += u32::from(child < 0),
        }
        while Instant::now() < until {
            let new = OpenOptions::new().read(true).write(true).create_new(true).open(path);
            leaked += u32::from(new.is_ok());
            made += u32::from(fs::remove_file(path).is_ok());
        }
    }
    [failed, made, leaked]
}

/// Creates a file without a name, and gives it one.
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
        [errno(linked)]
    });
    confined.numbers::<1>()[0]
}

#[test]
#[ignore = "takes long: make test-rest"]
fn refuses_files_whose_labels_find_no_place() {
    if !is_guest() {
        return played(refuses_files_whose_labels_find_no_place);
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
    assert_eq!(fs::hard_link("/srv/plain/old", "/srv/place/new").unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    assert!(enforcer.state().failures()[TG_FAILED_LABELS_FULL as usize] >= failures + 3);
    // A file with its directory's label, or one that never leaves memory, needs no place.
    assert_eq!(made(maker, "/srv/plain/x"), 0);
    assert_eq!(made(maker, "/memory/place/x"), 0);
    labels.delete(&key(0)).unwrap();
    assert_eq!(made(maker, "/srv/place/x"), 0);
    types(enforcer, &[("/srv/place/x", "made_t"), ("/memory/place/x", "made_t"), ("/srv/plain/x", "file_t")]);
}

/// The key of a label that belongs to no file.
fn key(number: u64) -> [u8; 24] {
    let mut key = [0xff; 24];
    key[..8].copy_from_slice(&number.to_ne_bytes());
    key
}

/// Fills the map of labels.
fn fill(labels: &MapHandle) {
    let (room, batch) = (u64::from(labels.max_entries()), 1 << 16);
    for first in (0..room).step_by(batch) {
        let keys: Vec<u8> = (first..room.min(first + batch as u64)).flat_map(key).collect();
        let values = vec![0; keys.len() / 24 * size_of::<tg_label_value>()];
        // The last batch does not fit completely.
        let _ = labels.update_batch(&keys, &values, (keys.len() / 24) as u32, MapFlags::ANY, MapFlags::ANY);
    }
    assert!(
        labels.update(&[0xfe; 24], &[0; size_of::<tg_label_value>()], MapFlags::ANY).is_err(),
        "the map is not full"
    );
}

#[test]
fn labels_a_processs_files_in_proc_as_the_process_is() {
    if !is_guest() {
        return played(labels_a_processs_files_in_proc_as_the_process_is);
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
    // The second answer comes from the cache entry of the first.
    assert_eq!((lists(&directory), lists(&directory)), (0, 0));
    process.told.write_all(&[0]).unwrap();
    assert_eq!(process.number(), 2);
    assert_eq!(lists(&directory), libc::EACCES.cast_unsigned());
    types(enforcer, &[(&directory, "reader_t"), (&descriptors, "reader_t"), (&deep, "proc_t")]);
    process.told.write_all(&[0]).unwrap();
    process.numbers::<0>();
}

/// Two starts of enforcement take long; the test below copies the same files.
#[test]
#[cfg(feature = "long")]
fn keeps_labels_of_what_overlayfs_copies_that_was_in_memory_before() {
    if !is_guest() {
        return played_alone(KERNELS, keeps_labels_of_what_overlayfs_copies_that_was_in_memory_before);
    }
    let mut before = start(&[]);
    sh("echo > /srv/low/place/old");
    set(&mut before, "/srv/low/place/old", "file_t");
    before.stop().unwrap();
    drop(before);
    mount_overlay();
    // Files created above have another type. None is held open, or it would be labelled by that.
    fs::read("/over/place/old").unwrap();
    let enforcer = &mut enforce(&[]);
    sh("echo more >> /over/place/old");
    types(enforcer, &[("/over/place/old", "file_t"), ("/srv/up/place/old", "file_t")]);
    forget_inodes();
    types(enforcer, &[("/over/place/old", "file_t"), ("/srv/up/place/old", "file_t")]);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_labels_of_what_overlayfs_copies_and_replaces() {
    if !is_guest() {
        return played(keeps_labels_of_what_overlayfs_copies_and_replaces);
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
    // Over the whiteout of the removed file, which was created in the work directory.
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
