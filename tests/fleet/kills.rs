//! The agent and the daemon are killed at random instants of rollouts, in each part of them (`marks`). Whenever that is, the
//! node decides by the old generation or by the new one, whole: its policy and its guard's database. The highest number
//! that it has seen never falls.

mod marks;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::{self, JoinHandle, sleep},
    time::{Duration, Instant},
};

use fastrand::Rng;
use tollgate_client::{Client, fleet::Report};
use tollgate_enforcer::guard::Guard;
use tollgate_guard::{Database, Digest};

use self::marks::{Mark, Rollout, Spans};
use super::{FLEET, REPORT, offer, publish};
use crate::program::{
    Scratch,
    inside::{Guests, is_guest, name, policy, sh},
    report,
};

const KILLS: u32 = if cfg!(feature = "long") { 200 } else { 12 };
const TIMEOUT: Duration = Duration::from_secs(120);
/// What a worker does each time that it is asked. The first policy lets it read the file and not write it, the second one
/// the other way round. A policy replaces another in the middle at most once, so only a torn one answers `000` or `111`.
const ACTS: &str = "\
try() { \"$@\" 2>/dev/null && printf 1 || printf 0; }
reads() { true </srv/split; }
writes() { true >/srv/split; }
while read -r _; do try reads; try writes; try reads; echo; done
";
/// What the daemon keeps.
const ACCEPTED: &str = "/var/lib/tollgate/accepted";
/// The numbers of the newest manifests that the daemon and the agent have accepted are in these files.
const KEPT: [&str; 2] = ["/var/lib/tollgate/accepted/newest", "/node/newest"];

/// The policies, and the guard's databases that belong to them. Their places here are their names in this file.
const POLICIES: [&str; 2] = ["/one", "/two"];
const DATABASES: [&str; 2] = ["/learn", "/warn"];
/// Makes the databases.
const MAKE_DATABASES: &str = "\
for mode in learn warn; do
    tollgate guard save /$mode && tollgate guard mode setuid $mode --database /$mode
done
";

/// A confined process that says by which policy the kernel decides.
struct Worker {
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
    _process: Child,
}

/// By what a worker was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decided {
    /// By the policy of this place.
    By(usize),
    /// One policy was replacing the other.
    Between,
    /// By none of them, or by parts of both.
    Torn,
}

impl Worker {
    fn start() -> Self {
        let words = ["run", "--context", "u:r:worker_t:s0", "--", "sh", "-c", ACTS];
        let mut command = Command::new("tollgate");
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (asked, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { asked, answers: BufReader::new(answers), _process: child }
    }

    fn ask(&mut self) -> Decided {
        let mut line = String::new();
        self.asked.write_all(b"\n").unwrap();
        self.answers.read_line(&mut line).unwrap();
        match line.trim_end() {
            "101" => Decided::By(0),
            "010" => Decided::By(1),
            "000" | "111" => Decided::Torn,
            other => {
                assert_eq!(other.len(), 3, "the worker says {other:?}");
                Decided::Between
            }
        }
    }
}

/// What a worker was answered while agent and daemon were killed.
#[derive(Default)]
struct Tally {
    settled: AtomicU64,
    torn: AtomicU64,
    ended: AtomicBool,
}

impl Tally {
    /// Asks a worker again and again until the kills end.
    fn watch(&self) {
        let mut worker = Worker::start();
        while !self.ended.load(SeqCst) {
            match worker.ask() {
                Decided::By(_) => &self.settled,
                Decided::Torn => &self.torn,
                Decided::Between => continue,
            }
            .fetch_add(1, SeqCst);
            sleep(Duration::from_millis(10));
        }
    }
}

fn start(program: &str, words: &[&str]) -> Child {
    let log = fs::File::options().create(true).append(true).open("/log").unwrap();
    Command::new(program).args(words).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

fn agent() -> Child {
    start("tollgate-fleet", &["agent", "--store", "/store", "--kept", "/node", "--spread", "0s"])
}

fn daemon() -> Child {
    start("tollgate", &["enforce", "--foreground", "--guard", POLICIES[0]])
}

/// The digest of the guard's database in force, as its programs have it.
fn guarded_by() -> Option<Digest> {
    Guard::adopt().unwrap().expect("a guard").database()
}

fn digest(file: &str) -> Digest {
    Database::from_bytes(&fs::read(file).unwrap()).unwrap().digest()
}

/// What killed writers have left below a folder.
fn left(folder: &str) -> usize {
    let found = Command::new("find").args([folder, "-name", ".fresh-*"]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().count()
}

/// What agents and daemons have said.
fn log() -> String {
    fs::read_to_string("/log").unwrap_or_default()
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What the daemon reports, as soon as one answers and this holds.
#[track_caller]
fn when(what: &str, holds: impl Fn(&Report) -> bool) -> Report {
    let begun = Instant::now();
    loop {
        let report = Client::connect().and_then(|mut client| client.fleet());
        match report {
            Ok(report) if holds(&report) => return report,
            other => assert!(begun.elapsed() < TIMEOUT, "waited too long for {what}: {other:?}\n{}", log()),
        }
        sleep(Duration::from_millis(20));
    }
}

/// The number of a manifest.
fn number(path: &str) -> u64 {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    text.lines().find_map(|line| line.strip_prefix("number ")).unwrap().parse().unwrap()
}

/// The generation that proves itself, whole.
fn proven(report: &Report) -> [Option<String>; 3] {
    [&report.generation, &report.tables, &report.mode].map(Clone::clone)
}

/// A node whose agent and daemon are killed.
struct Node {
    daemon: Child,
    worker: Worker,
    watching: JoinHandle<()>,
    /// What it proves under each policy.
    proofs: [[Option<String>; 3]; 2],
    /// By which policy it decides.
    present: usize,
    /// The highest numbers that were seen, of the daemon and the agent.
    highest: [u64; 2],
    /// How many manifests were published.
    published: u64,
    spans: Spans,
}

/// What a kill has left.
struct Left {
    /// How far the rollout had come.
    mark: Mark,
    /// Whether the node decides by the new generation.
    new: bool,
}

impl Node {
    /// Lets the node take each policy once, beside another worker, which goes on until the kills end.
    fn new(tally: &Arc<Tally>) -> Self {
        sh(&format!("mount -o loop /image /srv; echo > /srv/split; mkdir /manifests; {FLEET}"));
        let daemon = daemon();
        when("the daemon", |_| true);
        sh(MAKE_DATABASES);
        // Joined only at the end: if a check fails, nobody tells it to end.
        let watched = Arc::clone(tally);
        let watching = thread::spawn(move || watched.watch());
        let mut node = Self {
            daemon,
            worker: Worker::start(),
            watching,
            proofs: Default::default(),
            present: 0,
            highest: [0; 2],
            published: 0,
            spans: Spans::default(),
        };
        for place in [1, 0] {
            node.publish(place);
            let (mut agent, published) = (agent(), node.published);
            let report = when("a rollout", |report| report.number == published);
            sh(&format!("{REPORT} --wait 60s"));
            kill(&mut agent);
            (node.proofs[place], node.present) = (proven(&report), place);
            assert_eq!((node.worker.ask(), node.numbers()), (Decided::By(place), [published; 2]));
            assert_eq!(guarded_by(), Some(digest(DATABASES[place])));
        }
        node
    }

    fn publish(&mut self, place: usize) {
        publish(POLICIES[place], &format!("--guard {}", DATABASES[place]));
        self.published += 1;
        sh(&format!("cp /store/current/web /manifests/{}", self.published));
    }

    fn numbers(&self) -> [u64; 2] {
        KEPT.map(number)
    }

    /// Publishes the policy that is not in force, and kills agent and daemon at a mark of its rollout, or after so much of
    /// the time that it took lately from there to the next one.
    fn killed(&mut self, mark: Mark, share: f64, daemon_first: bool) -> Left {
        let (old, new) = (self.present, 1 - self.present);
        self.publish(new);
        let rollout = Rollout::new(self.published, new, self.proofs[new][0].clone().expect("a generation"));
        let mut agent = agent();
        rollout.wait(mark, &mut agent, &mut self.spans);
        sleep(self.spans[mark as usize].mul_f64(share));
        let mut both = [&mut agent, &mut self.daemon];
        if daemon_first {
            both.reverse();
        }
        both.into_iter().for_each(kill);
        // Nobody changes anything now: programs decide alone.
        let mark = rollout.reached();
        let place = if mark >= Mark::Switched { new } else { old };
        assert_eq!(self.worker.ask(), Decided::By(place), "without a daemon, at {mark:?}");
        assert_eq!(guarded_by(), Some(digest(DATABASES[place])), "guard and policy, without a daemon, at {mark:?}");
        self.daemon = daemon();
        let report = when("the next daemon", |_| true);
        let decided = self.worker.ask();
        self.present = [old, new].into_iter().find(|place| decided == Decided::By(*place)).expect("a whole policy");
        assert_eq!(proven(&report), self.proofs[self.present], "at {mark:?}");
        self.check_numbers(&report);
        Left { mark, new: self.present == new }
    }

    /// No number falls, and nothing older is accepted.
    fn check_numbers(&mut self, report: &Report) {
        let (numbers, [highest, _]) = (self.numbers(), self.highest);
        assert!(
            numbers.iter().zip(self.highest).all(|(now, before)| *now >= before),
            "{numbers:?}, {:?}",
            self.highest
        );
        assert_eq!((report.number, report.number >= highest), (numbers[0], true));
        let older = format!("/manifests/{}", report.number - 1);
        let refusal = offer(&older, POLICIES[0]).unwrap_err().to_string();
        assert!(refusal.contains(&format!("where {} was seen", report.number)), "{refusal}");
        self.highest = numbers;
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn decides_by_one_whole_generation_whenever_agent_and_daemon_are_killed() {
    if !is_guest() {
        return in_guest(decides_by_one_whole_generation_whenever_agent_and_daemon_are_killed);
    }
    let seed = fastrand::u64(..);
    println!("seed {seed:#x}");
    let (mut random, tally) = (Rng::with_seed(seed), Arc::<Tally>::default());
    let mut node = Node::new(&tally);
    let (mut old, mut new, mut marks) = (0, 0, [0; Mark::ALL.len()]);
    for (turn, (mark, after)) in (1..=KILLS).zip(marks::plan()) {
        let share = if after { random.f64() * 1.1 } else { 0.0 };
        let left = node.killed(mark, share, random.bool());
        *if left.new { &mut new } else { &mut old } += 1;
        marks[left.mark as usize] += 1;
        if turn % 20 == 0 {
            println!("{turn} kills: {old} old, {new} new");
        }
    }
    for (mark, count) in Mark::ALL.iter().zip(marks) {
        println!("{count} kills after {mark:?}, which takes {:?}", node.spans[*mark as usize]);
    }
    tally.ended.store(true, SeqCst);
    node.watching.join().unwrap();
    let mut agent = agent();
    sh(&format!("{REPORT} --wait 120s"));
    let (unfinished, before) = (left("/var/lib/tollgate/accepted"), left("/node"));
    println!("files that killed writers left: {unfinished} of the daemon, {before} of the agent in its last minute");
    assert_eq!(unfinished, 0);
    let (settled, torn) = (tally.settled.load(SeqCst), tally.torn.load(SeqCst));
    let near: u32 = marks[Mark::Copied as usize..=Mark::Accepted as usize].iter().sum();
    let figure = format!(
        "{KILLS} kills: {old} times the old generation, {new} times the new one; {near} from the daemon's copy to its \
         acceptance; {torn} of {} decisions torn; number {}",
        settled + torn,
        node.highest[0]
    );
    let met = torn == 0 && settled > u64::from(KILLS) && old > 0 && new > 0 && near > 0;
    report("kill -9 of agent and daemon during rollouts", &figure, "0 torn, no number falls", met);
    assert!(met, "{figure}");
    kill(&mut agent);
    kill(&mut node.daemon);
}

/// Fails unless a test passes in a guest of its own.
fn in_guest(test: impl Fn()) {
    let [all, one, two] = ["", "-one", "-two"].map(|part| policy(&format!("survival{part}.cil")));
    let scratch = Scratch::new();
    let fleet = scratch.program().with_file_name("tollgate-fleet");
    let guests = Guests {
        kernels: &["6.1"],
        policies: &[(&[all.clone(), one], POLICIES[0]), (&[all, two], POLICIES[1])],
        files: &[(&scratch.program(), "/bin/tollgate"), (&fleet, "/bin/tollgate-fleet")],
        processors: 2,
        timeout: if cfg!(feature = "long") { 7200 } else { 900 },
        share_srv: false,
        tests: &[name(&test)],
    };
    guests.play(&scratch).assert_passed(test);
}
