//! Enforcement survives its daemon and its policy: under load the daemon is killed at random instants, and one policy
//! replaces another.
//!
//! The expected verdict of each act is known. The part in the guest is this program again. Kernels are needed, from the cache
//! or a network, and mke2fs.

use std::{
    fs::{self, File},
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::atomic::Ordering::SeqCst,
    thread::sleep,
    time::{Duration, Instant},
};

use fastrand::Rng;
use tollgate_client::{Client, ClientError, protocol::Mode, status::Status};

use self::load::{SWITCHING, Shared, WORKER};
#[cfg(feature = "long")]
use crate::program::word;
use crate::program::{
    Scratch,
    guests::KERNELS,
    inside::{Guests, by_path, forget_inodes, is_guest, name, policy, sh},
    report,
};

mod load;

const KILLS: u32 = 10;
const RELOADS: u32 = 50;
const ALL_KILLS: u32 = 200;
const ALL_RELOADS: u32 = 1000;
const TIMEOUT: Duration = Duration::from_secs(120);

fn in_guests(test: impl Fn()) {
    let [all, one, two] = ["", "-one", "-two"].map(|part| policy(&format!("survival{part}.cil")));
    let (one, two) = ([all.clone(), one], [all, two]);
    let policies = [(&one[..], "/one"), (&two[..], "/two")];
    let scratch = Scratch::new();
    let program = scratch.program();
    let files = [(program.as_path(), "/bin/tollgate")];
    play(&scratch, &policies, &files, test);
}

/// Fails unless a test passes in guests of its own: each begins with enforcement of its first policy.
fn play(scratch: &Scratch, policies: &[(&[PathBuf], &str)], files: &[(&Path, &str)], test: impl Fn()) {
    let tests = &[name(&test)];
    let guests = Guests { kernels: KERNELS, policies, files, processors: 2, timeout: 3000, share_srv: false, tests };
    guests.play(scratch).assert_passed(test);
}

/// The full count on 6.1 in long tests; else the short one.
fn times(all: u32, some: u32) -> u32 {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    if cfg!(feature = "long") && release.starts_with("6.1.") { all } else { some }
}

/// Random numbers with a new seed each time.
fn random() -> Rng {
    let seed = fastrand::u64(..);
    println!("seed {seed:#x}");
    Rng::with_seed(seed)
}

/// The files of the load, on ext4.
fn prepare() {
    sh("mount -o loop /image /srv; mkdir /srv/closed /srv/make /srv/turn; cp /bin/busybox /srv/closed/program; \
        echo > /srv/open; echo > /srv/split; echo > /srv/closed/file; echo > /srv/labelled; mkdir -p /var/log");
}

fn daemon(policy: &str, descriptors: &str) -> Child {
    let arguments = ["enforce", "--foreground", "--audit-limit", "20", "--descriptors", descriptors, policy];
    Command::new("/bin/tollgate").args(arguments).spawn().unwrap()
}

/// The daemon's status as soon as it answers.
fn ready(daemon: &mut Child) -> Status {
    let started = Instant::now();
    loop {
        match Client::connect().and_then(|mut client| client.status()) {
            Ok(status) if status.daemon == daemon.id() => return status,
            _ => sleep(Duration::from_millis(20)),
        }
        assert!(daemon.try_wait().unwrap().is_none(), "the daemon has ended");
        assert!(started.elapsed() < TIMEOUT, "no daemon");
    }
}

/// The hooks with a program, except the one that is attached only during a revocation.
fn hooks(status: &Status) -> Vec<&str> {
    let attached = status.hooks.attached.iter().map(String::as_str);
    attached.filter(|hook| *hook != "file_permission").collect()
}

/// What every daemon must report.
#[track_caller]
fn healthy(status: &Status, first: &Status) {
    assert_eq!((status.mode, status.labelling_complete, status.since), (Mode::Enforcing, true, first.since));
    assert_eq!(hooks(status), hooks(first));
    let failures: Vec<_> = status.failures.iter().filter(|(name, _)| !name.starts_with("event")).collect();
    assert!(failures.is_empty(), "{failures:?}");
}

fn reload(path: &str) -> Result<u32, ClientError> {
    let file = File::open(path).unwrap();
    Client::connect()?.reload(file.as_fd(), false, None)
}

/// The constant work of an administrator, with a daemon or without: other policies, other labels.
fn administer(shared: &Shared, round: u64) {
    let label = ["open_t", "kind0_t"][(round % 2) as usize];
    let orders = [
        reload(["/one", "/two"][(round / 2 % 2) as usize]).map(drop),
        Client::connect().and_then(|mut daemon| {
            let context = format!("u:object_r:{label}:s0:c{}", round % 64);
            daemon.set_label(by_path("/srv/labelled").as_fd(), &context).map(drop)
        }),
    ];
    for order in orders {
        if let Err(ClientError::Refused(refusal)) = order {
            eprintln!("WRONG: {refusal}");
            shared.wrong.fetch_add(1, SeqCst);
        }
    }
    sleep(Duration::from_millis(50));
}

/// Kills the daemon at a random instant, half of the time before it answers, and starts another.
fn kill(daemon: &mut Child, shared: &Shared, first: &Status, random: &mut Rng) {
    if random.u64(..3) > 0 {
        healthy(&ready(daemon), first);
        shared.daemon.store(daemon.id(), SeqCst);
    }
    sleep(Duration::from_millis(random.u64(..600)));
    shared.daemon.store(0, SeqCst);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    if random.u64(..4) == 0 {
        sleep(Duration::from_millis(random.u64(..300)));
    }
    *daemon = self::daemon("/one", "check");
}

#[test]
#[ignore = "takes long: make test-rest"]
fn denies_and_grants_as_before_when_its_daemon_is_killed_under_load() {
    if !is_guest() {
        return in_guests(denies_and_grants_as_before_when_its_daemon_is_killed_under_load);
    }
    prepare();
    let (shared, mut random, kills) = (Shared::new(), random(), times(ALL_KILLS, KILLS));
    let mut child = daemon("/one", "check");
    let first = ready(&mut child);
    let mut load = vec![
        load::start(shared, Some(WORKER), |round| load::steady(shared, round)),
        load::start(shared, Some(WORKER), |round| load::ask(shared, round)),
    ];
    load.push(load::start(shared, None, |round| administer(shared, round)));
    for _ in 0..kills {
        kill(&mut child, shared, &first, &mut random);
    }
    // If nothing else has time for a reload between two kills, the last daemon has.
    let (mut last, started) = (ready(&mut child), Instant::now());
    while last.generation == 1 && started.elapsed() < TIMEOUT {
        sleep(Duration::from_millis(100));
        last = ready(&mut child);
    }
    load::end(shared, &load);
    healthy(&last, &first);
    let ([granted, denied, wrong], answers) = (shared.counts(), shared.answers.load(SeqCst));
    let figure = format!(
        "{wrong} wrong of {granted} allowed and {denied} denied acts over {kills} kills; {answers} answers; generation {}",
        last.generation
    );
    let met = wrong == 0 && granted.min(denied) > 100 * u64::from(kills) && answers > 0 && last.generation > 1;
    report("acts while the daemon is killed", &figure, "0 wrong", met);
    assert!(met, "{figure}");
    child.kill().unwrap();
}

/// Checks the types of the files that the load has left, which their names contain.
fn check_kept() -> usize {
    forget_inodes();
    let mut daemon = Client::connect().unwrap();
    let kept = fs::read_dir("/srv/turn").unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for path in kept {
        let label = daemon.label(by_path(&path).as_fd()).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let expected: &[&str] = match name.split('.').next().unwrap() {
            "either" => &["made_one_t", "made_two_t"],
            "made_one_t" => &["made_one_t"],
            "made_two_t" => &["made_two_t"],
            _ => continue,
        };
        assert!(expected.contains(&label.split(':').nth(2).unwrap()), "{name}: {label}");
        count += 1;
    }
    count
}

/// Changes the policy, after which the one of this number is in force.
fn stamped<T>(shared: &Shared, number: u64, change: impl FnOnce() -> T) -> T {
    let stamp = |stamp| {
        shared.stamp.store(stamp, SeqCst);
        shared.kept.store(0, SeqCst);
    };
    stamp(SWITCHING);
    let changed = change();
    stamp(number);
    changed
}

/// A policy that fails a sanity question is taken back, and a damaged one changes nothing.
fn refuse(generation: u32) {
    let line = "u:r:worker_t:s0\tu:object_r:split_t:s0\tfile\tread\n";
    fs::write("/insane", line.repeat(2)).unwrap();
    fs::write("/broken", &fs::read("/two").unwrap()[..2000]).unwrap();
    let (two, broken, insane) =
        (File::open("/two").unwrap(), File::open("/broken").unwrap(), File::open("/insane").unwrap());
    let mut daemon = Client::connect().unwrap();
    let refusal = daemon.reload(two.as_fd(), false, Some(insane.as_fd())).unwrap_err().to_string();
    assert!(refusal.contains("split_t:s0 file read is denied"), "{refusal}");
    daemon.reload(broken.as_fd(), false, None).unwrap_err();
    let status = daemon.status().unwrap();
    assert_eq!((status.generation, status.mode), (generation, Mode::Enforcing));
}

#[test]
#[ignore = "takes long: make test-rest"]
fn answers_by_one_policy_while_another_takes_its_place_under_load() {
    if !is_guest() {
        return in_guests(answers_by_one_policy_while_another_takes_its_place_under_load);
    }
    prepare();
    let (shared, reloads) = (Shared::new(), times(ALL_RELOADS, RELOADS));
    let mut child = daemon("/one", "check");
    let first = ready(&mut child);
    let load = [
        load::start(shared, Some(WORKER), |round| load::steady(shared, round)),
        load::start(shared, Some(WORKER), |round| load::turning(shared, round)),
    ];
    let started = Instant::now();
    for number in 1..=u64::from(reloads) {
        let change = || reload(["/one", "/two"][(number % 2) as usize]).unwrap();
        assert_eq!(u64::from(stamped(shared, number, change)), number + 1);
        sleep(Duration::from_millis(20));
        if number.is_multiple_of(10) {
            stamped(shared, number, || refuse(number as u32 + 1));
        }
    }
    let each = started.elapsed() / reloads;
    load::end(shared, &load);
    healthy(&Client::connect().unwrap().status().unwrap(), &first);
    let ([granted, denied, wrong], torn) = (shared.counts(), shared.torn.load(SeqCst));
    let kept = check_kept();
    let figure = format!(
        "{wrong} wrong of {granted} allowed and {denied} denied acts over {reloads} reloads of {} ms; {torn} new files met \
         a switch between label and leave; labels of {kept} right",
        each.as_millis()
    );
    let met = wrong == 0 && granted.min(denied) > 20 * u64::from(reloads) && kept > 10;
    report("acts while policies change", &figure, "0 wrong", met);
    assert!(met, "{figure}");
    child.kill().unwrap();
}

#[test]
#[cfg(feature = "long")]
fn answers_by_one_of_debians_policies_while_another_takes_its_place_under_load() {
    const SERVER: &str = "system_u:system_r:httpd_t:s0";
    if !is_guest() {
        let scratch = Scratch::new();
        let [some, all, program] = [scratch.path("some"), scratch.path("all"), scratch.program()];
        scratch.run(&["policy", "debian", "default", "-o", word(&some)]).with(0);
        scratch.run(&["policy", "debian", "default", "--all-modules", "-o", word(&all)]).with(0);
        let files = [(program.as_path(), "/bin/tollgate"), (&some, "/one"), (&all, "/two")];
        return play(
            &scratch,
            &[],
            &files,
            answers_by_one_of_debians_policies_while_another_takes_its_place_under_load,
        );
    }
    sh("mount -o loop /image /srv; mkdir -p /srv/tmp /var/log; echo > /srv/page; echo > /srv/shadow");
    let shared = Shared::new();
    // A server of Debian's may not use this program's open files.
    let mut child = daemon("/one", "use");
    let first = ready(&mut child);
    for (path, type_) in [("/srv/page", "httpd_sys_content_t"), ("/srv/shadow", "shadow_t"), ("/srv/tmp", "tmp_t")] {
        let context = format!("system_u:object_r:{type_}:s0");
        Client::connect().unwrap().set_label(by_path(path).as_fd(), &context).unwrap();
    }
    let load = [load::start(shared, Some(SERVER), |round| load::serve(shared, round))];
    let reloads = times(20, 5);
    let started = Instant::now();
    for number in 1..=reloads {
        assert_eq!(reload(["/one", "/two"][(number % 2) as usize]).unwrap(), number + 1);
    }
    let each = started.elapsed() / reloads;
    load::end(shared, &load);
    let last = Client::connect().unwrap().status().unwrap();
    assert_eq!((last.mode, last.hooks), (Mode::Enforcing, first.hooks));
    let [granted, denied, wrong] = shared.counts();
    let figure = format!(
        "{wrong} wrong of {granted} allowed and {denied} denied acts over {reloads} reloads of {} ms",
        each.as_millis()
    );
    report("acts while Debian's policies change", &figure, "0 wrong", wrong == 0 && granted > 1000);
    assert!(wrong == 0 && granted > 1000, "{figure}");
    child.kill().unwrap();
}
