//! Limits: labels, names and numbers at their ends, and objects that change while they are used.
//!
//! The part in the guest is this program again: it starts the enforcer in its own process. Kernels are needed, from the cache
//! or a network, and mke2fs.

use std::{
    fs::{self, File, OpenOptions},
    io, iter,
    os::{
        fd::{AsFd, AsRawFd},
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{Duration, Instant},
};

use libbpf_rs::{MapCore, MapFlags};
use tollgate_abi::{
    bytes_of,
    enforcer::{
        TG_ATTRIBUTE_FSCREATE, TG_FAILED_NO_LABEL, TG_FAILED_SIDS_FULL, TG_PRCTL, TG_SIDS, tg_failure, tg_label_key,
        tg_label_value, tg_unwritten,
    },
};
use tollgate_enforcer::{
    contexts::Sid,
    enforcer::{Enforcer, EnforcerError, Options},
};
use tollgate_policy::built::Built;

use crate::program::{
    Scratch,
    guests::KERNELS,
    inside::{Confined, Guests, Played, by_path, enforcer, errno, is_enforced, is_guest, name, opened, policy, sh},
    report,
};

const DENIED: u32 = libc::EACCES.cast_unsigned();
/// How many contexts are in use at once.
const CONTEXTS: usize = 10_000;
/// How long objects change while they are used.
const RACE: Duration = Duration::from_secs(5);
/// The longest path that the kernel takes, without the NUL at its end.
const LONGEST_PATH: usize = 4095;

/// Fails unless a test has passed in guests, which all tests of this file share.
fn played(test: impl Fn()) {
    static PLAYED: OnceLock<Played> = OnceLock::new();
    let play = || {
        let [all, one, two] = ["", "-one", "-two"].map(|part| policy(&format!("survival{part}.cil")));
        let guests = Guests {
            kernels: KERNELS,
            policies: &[(&[all.clone(), one], "/one"), (&[all, two], "/two")],
            files: &[],
            processors: 2,
            timeout: 400,
            share_srv: false,
            tests: &[
                name(denies_what_has_lost_its_label_and_what_was_not_labelled_yet),
                name(decides_at_the_end_of_the_longest_paths),
                name(judges_a_file_by_its_own_label_while_it_is_linked_renamed_and_its_number_used_again),
                name(writes_no_label_to_the_file_system_that_took_a_device),
                // It leaves no SID for other tests.
                name(keeps_ten_thousand_contexts_apart_and_refuses_those_that_find_no_number),
            ],
        };
        guests.play(&Scratch::new())
    };
    PLAYED.get_or_init(play).assert_passed(test);
}

/// Enforcement, with an ext4 at `/srv` as `line` has prepared it.
fn start(line: &str) -> Enforcer {
    sh(&format!("mount -o loop /image /srv; {line}"));
    enforcer(Options::default(), "/one")
}

fn worker(enforcer: &mut Enforcer) -> Sid {
    enforcer.intern("u:r:worker_t:s0").unwrap()
}

fn failures(enforcer: &Enforcer, failure: tg_failure) -> u64 {
    enforcer.state().failures()[failure as usize]
}

/// The results of a worker's attempts to open.
fn opens<const N: usize>(worker: Sid, paths: [&Path; N]) -> [u32; N] {
    Confined::start(worker, |_| paths.map(opened)).numbers()
}

/// The contexts of files, each with another type or level: those that a worker of level s0 may read first.
fn contexts() -> impl Iterator<Item = String> {
    let kinds = |level: String| (0..16).map(move |kind| format!("u:object_r:kind{kind}_t:s0{level}"));
    let pairs = (0..64).flat_map(|high| (0..high).map(move |low| format!(":c{low},c{high}")));
    iter::once(String::new()).chain((0..64).map(|category| format!(":c{category}"))).chain(pairs).flat_map(kinds)
}

/// Creates a file of each label, as a process that may choose labels; returns how many of them a worker can read.
fn make_and_read(worker: Sid, sids: &[Sid]) -> [u32; 2] {
    for sid in sids {
        // SAFETY: this prctl takes numbers only.
        let done = unsafe { libc::prctl(TG_PRCTL.cast_signed(), TG_ATTRIBUTE_FSCREATE, *sid, 0, 0) };
        assert_eq!((done, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EALREADY)));
        File::create(format!("/many/{sid}")).unwrap();
    }
    // SAFETY: this prctl takes numbers only.
    unsafe { libc::prctl(TG_PRCTL.cast_signed(), TG_ATTRIBUTE_FSCREATE, 0, 0, 0) };
    readable(worker, sids)
}

/// How many of the files of these labels a worker can read, and how many are denied to it.
fn readable(worker: Sid, sids: &[Sid]) -> [u32; 2] {
    let confined = Confined::start(worker, |_| {
        let results: Vec<u32> = sids.iter().map(|sid| opened(format!("/many/{sid}"))).collect();
        [0, DENIED].map(|wanted| results.iter().filter(|result| **result == wanted).count() as u32)
    });
    confined.numbers()
}

#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_ten_thousand_contexts_apart_and_refuses_those_that_find_no_number() {
    if !is_guest() {
        return played(keeps_ten_thousand_contexts_apart_and_refuses_those_that_find_no_number);
    }
    let mut enforcer = start("mkdir /many /srv/make; mount -t tmpfs none /many");
    let worker = worker(&mut enforcer);
    let mut all = contexts();
    let started = Instant::now();
    let sids: Vec<Sid> = all.by_ref().take(CONTEXTS).map(|context| enforcer.intern(&context).unwrap()).collect();
    println!("{} contexts in {:?}", sids.len(), started.elapsed());
    // Of each type, the one without a category.
    assert_eq!(make_and_read(worker, &sids), [16, CONTEXTS as u32 - 16]);
    // Neither a new policy nor a new daemon confuses them.
    enforcer.reload(Built::open(Path::new("/two")).unwrap(), false, |_| Ok(())).unwrap();
    assert_eq!(readable(worker, &sids), [16, CONTEXTS as u32 - 16]);
    drop(enforcer);
    let mut enforcer = Enforcer::adopt(Options::default()).unwrap();
    let texts: Vec<String> = sids.iter().map(|sid| enforcer.contexts().text(*sid).to_owned()).collect();
    assert_eq!(texts, contexts().take(CONTEXTS).collect::<Vec<_>>());
    assert_eq!(readable(worker, &sids), [16, CONTEXTS as u32 - 16]);

    let refused = all.by_ref().find_map(|context| enforcer.intern(&context).err());
    assert!(matches!(refused, Some(EnforcerError::Full(_))), "{refused:?}");
    let used = enforcer.contexts().iter().count();
    assert!(used > TG_SIDS as usize * 3 / 4 - 100, "{used} contexts");
    // The kernel has no SID left either: objects that would need one are refused, and counted.
    let made = || Confined::start(worker, |_| [errno(File::create("/srv/make/new"))]).numbers::<1>()[0];
    let before = failures(&enforcer, TG_FAILED_SIDS_FULL);
    assert_eq!(made(), DENIED);
    assert!(failures(&enforcer, TG_FAILED_SIDS_FULL) > before);
    report("contexts in use at once", &used.to_string(), "10000", used >= CONTEXTS);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn denies_what_has_lost_its_label_and_what_was_not_labelled_yet() {
    if !is_guest() {
        return played(denies_what_has_lost_its_label_and_what_was_not_labelled_yet);
    }
    // Files that are created under enforcement have a label.
    assert!(!is_enforced());
    sh("mkdir /later; cp /image /second; mount -o loop /second /later; echo > /later/file; umount /later");
    let mut enforcer = start("echo > /srv/open");
    let worker = worker(&mut enforcer);
    let paths = [Path::new("/srv/open"), Path::new("/later/file")];
    assert_eq!(opens(worker, paths), [0, libc::ENOENT.cast_unsigned()]);
    // No process removes a label; a kernel short of memory may.
    let held = File::open("/srv/open").unwrap();
    enforcer.maps().inodes.delete(&held.as_raw_fd().to_ne_bytes()).unwrap();
    enforcer.state().forget();
    // A process that enters a domain would not be allowed to take it along.
    drop(held);
    sh("mount -o loop /second /later");
    let before = failures(&enforcer, TG_FAILED_NO_LABEL);
    assert_eq!(opens(worker, paths), [DENIED; 2]);
    assert!(failures(&enforcer, TG_FAILED_NO_LABEL) >= before + 2);
    // An unconfined process goes on, and is not counted.
    let before = failures(&enforcer, TG_FAILED_NO_LABEL);
    assert_eq!(paths.map(opened), [0; 2]);
    assert_eq!(failures(&enforcer, TG_FAILED_NO_LABEL), before);
    let sid = enforcer.intern("u:object_r:open_t:s0").unwrap();
    enforcer.set_label(by_path("/srv/open").as_fd(), sid).unwrap();
    assert_eq!(enforcer.catch_up(), [""; 0]);
    assert_eq!(opens(worker, paths), [0; 2]);
    let later = enforcer.label(by_path("/later/file").as_fd()).unwrap();
    assert_eq!(enforcer.contexts().text(later), "u:object_r:file_t:s0");
}

/// A path with as many bytes as the kernel accepts, below a directory, with its directories created.
fn longest(below: &str, name: &str) -> PathBuf {
    let mut path = PathBuf::from(below);
    loop {
        let left = LONGEST_PATH - path.as_os_str().len() - name.len() - 2;
        // The rest is the file's name.
        if left < 240 {
            return path.join(format!("{name}{}", "x".repeat(left + 1)));
        }
        path.push("d".repeat(200));
        fs::DirBuilder::new().mode(0o755).recursive(true).create(&path).unwrap();
    }
}

/// Files deeper than any path: the current directory is the deepest from here on.
fn descend(below: &str, deep: usize) {
    std::env::set_current_dir(below).unwrap();
    for _ in 0..deep {
        fs::create_dir("deep").unwrap();
        std::env::set_current_dir("deep").unwrap();
    }
    File::create("file").unwrap();
}

#[test]
#[ignore = "takes long: make test-rest"]
fn decides_at_the_end_of_the_longest_paths() {
    if !is_guest() {
        return played(decides_at_the_end_of_the_longest_paths);
    }
    let mut enforcer = start("mkdir /srv/a /srv/closed");
    let worker = worker(&mut enforcer);
    let [open, closed] = ["/srv/a", "/srv/closed"].map(|below| longest(below, "file"));
    for path in [&open, &closed] {
        File::create(path).unwrap();
    }
    assert_eq!(open.as_os_str().len(), LONGEST_PATH);
    let events = enforcer.state().events();
    assert_eq!(opens(worker, [&open, &closed]), [0, DENIED]);
    let long = PathBuf::from(format!("{}x", open.display()));
    assert_eq!(opens(worker, [&long]), [libc::ENAMETOOLONG.cast_unsigned()]);
    // The denial is audited, with as much of the path as there is room for.
    assert!(enforcer.state().events() > events);
    for (below, expected) in [("/srv/a", 0), ("/srv/closed", DENIED)] {
        descend(below, 2000);
        assert_eq!(opens(worker, [Path::new("file")]), [expected], "{below}");
    }
    std::env::set_current_dir("/").unwrap();
}

/// What one domain sees of files that another moves: how often they were granted, denied, or missing.
fn watch(worker: Sid, paths: &'static [&'static str], until: Instant) -> Confined {
    Confined::start(worker, move |_| {
        let mut counts = [0; 3];
        while Instant::now() < until {
            for path in paths {
                counts[match opened(path) {
                    0 => 0,
                    DENIED => 1,
                    _ => 2,
                }] += 1;
            }
        }
        counts
    })
}

#[test]
#[ignore = "takes long: make test-rest"]
fn judges_a_file_by_its_own_label_while_it_is_linked_renamed_and_its_number_used_again() {
    if !is_guest() {
        return played(judges_a_file_by_its_own_label_while_it_is_linked_renamed_and_its_number_used_again);
    }
    let mut enforcer =
        start("mkdir /srv/a /srv/b /srv/closed; echo > /srv/a/open; echo > /srv/closed/secret; mkdir /srv/closed/made");
    let worker = worker(&mut enforcer);
    let until = Instant::now() + RACE;
    let secret = watch(worker, &["/srv/closed/secret", "/srv/a/linked", "/srv/b/moved"], until);
    let open = watch(worker, &["/srv/a/open", "/srv/closed/linked", "/srv/b/open"], until);
    let made = watch(worker, &["/srv/closed/made/new"], until);
    let mine = watch(worker, &["/srv/a/new"], until);
    let mut rounds = 0;
    while Instant::now() < until {
        fs::hard_link("/srv/closed/secret", "/srv/a/linked").unwrap();
        fs::rename("/srv/a/linked", "/srv/b/moved").unwrap();
        fs::remove_file("/srv/b/moved").unwrap();
        fs::hard_link("/srv/a/open", "/srv/closed/linked").unwrap();
        fs::rename("/srv/a/open", "/srv/b/open").unwrap();
        fs::rename("/srv/b/open", "/srv/a/open").unwrap();
        fs::remove_file("/srv/closed/linked").unwrap();
        for new in ["/srv/a/new", "/srv/closed/made/new"] {
            OpenOptions::new().write(true).create_new(true).open(new).unwrap();
            fs::remove_file(new).unwrap();
        }
        rounds += 1;
    }
    let ([leaked, kept, _], [seen, refused, _]) = (secret.numbers(), open.numbers());
    let ([stolen, denied, _], [met, lost, _]) = (made.numbers(), mine.numbers());
    println!(
        "{rounds} rounds: {kept} kept, {leaked} leaked, {seen} seen, {refused} refused; new: {denied} denied, {stolen} stolen, {met} met, {lost} lost"
    );
    assert_eq!((leaked, refused, stolen, lost), (0, 0, 0, 0));
    assert!(rounds > 100 && kept > 100 && seen > 100 && denied > 10 && met > 10, "too few met");
}

#[test]
#[ignore = "takes long: make test-rest"]
fn writes_no_label_to_the_file_system_that_took_a_device() {
    if !is_guest() {
        return played(writes_no_label_to_the_file_system_that_took_a_device);
    }
    let mut enforcer = start("mkdir /srv/closed");
    let (worker, open) = (worker(&mut enforcer), enforcer.intern("u:object_r:open_t:s0").unwrap());
    enforcer.write_labels().unwrap();
    // In the kernel's form.
    let device = || {
        let device = fs::metadata("/srv").unwrap().dev();
        libc::major(device) << 20 | libc::minor(device)
    };
    let first = device();
    let known = |enforcer: &Enforcer| {
        let found =
            enforcer.maps().superblocks.lookup(&u64::from(first).to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        u32::from_ne_bytes(*found[28..].first_chunk().unwrap())
    };
    let before = known(&enforcer);
    sh("umount /srv; rm /image; cp /pristine /image; mount -o loop /image /srv");
    sh("mkdir /srv/closed; echo > /srv/closed/secret");
    assert_eq!(device(), first);
    assert_ne!(known(&enforcer), before);
    // The label of the first one's root, which was still to be written when that was unmounted.
    let key = tg_label_key { inode: 2, subvolume: 0, device: first, generation: 0 };
    let label = tg_label_value { sid: open, dirty: 1, share: 0, mounted: before };
    let (maps, unwritten) = (enforcer.maps(), tg_unwritten { uuid: [0; 16], sid: open });
    maps.labels.update(bytes_of(&key), bytes_of(&label), MapFlags::ANY).unwrap();
    maps.unwritten.update(bytes_of(&key), bytes_of(&unwritten), MapFlags::ANY).unwrap();
    enforcer.state().ring_labels(false);
    enforcer.catch_up();
    // A root with a label would say that `file_contexts` hold no longer.
    assert_eq!(opens(worker, [Path::new("/srv/closed/secret")]), [DENIED]);
}
