//! What holds for any database: text and file are read back, the evaluator says what the rules say, and changes lead from
//! one database to another.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use std::collections::BTreeSet;

use fastrand::Rng;
use tollgate_guard::{
    Act, Asked, Bit, Change, Class, Database, Digest, FileCall, Id, Item, Mode, Name, Place, PlainCall, Program,
    Question, Rule, Secret, Table, Until, changes,
};

const NAMES: [&str; 6] = ["/bin/su", "/bin/sh", "/usr/sbin/cron", "/a b", "/a b\u{e9}\\\n", "/x"];
const PATHS: [&str; 12] = [
    "/etc",
    "/etc/shadow",
    "/etc/shadow/x",
    "/var/mail/a",
    "/var",
    "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
    "/proc/1/stat",
    "/proc/22333444555/stat",
    "/proc/1",
    "/var/mail/a.Abc123",
    "/var/mail/a.zzzzzz",
    "/proc/7654321x",
];
const IDS: [u32; 5] = [0, 1, 7, 1000, u32::MAX];
const BITS: [u32; 6] = [0, 0o4000, 0o2000, 0o6000, 0o4755, 0o1000];

fn name(random: &mut Rng) -> Name {
    Name::of(*random.choice(NAMES.map(str::as_bytes).iter()).unwrap()).unwrap()
}

/// Contents are few, so that programs meet in them.
fn digest(random: &mut Rng) -> Digest {
    Digest::of(&[random.u8(..12)])
}

fn item(random: &mut Rng) -> Item {
    let mode = random.choice(Mode::ALL).unwrap().0;
    match random.u8(..10) {
        0 => Item::Default(random.choice(Class::ALL).unwrap().0, mode),
        1 => Item::Word(random.choice(["BOP", "GUARD", "a-b_c.1"]).unwrap().parse().unwrap()),
        2..5 => {
            let digests = (0..random.u8(1..4)).map(|_| digest(random)).collect();
            Item::Program(name(random), Program { mode, digests })
        }
        _ => Item::Rule(Rule { caller: name(random), act: act(random), until: until(random) }),
    }
}

/// Most rules never end, and most processes have done nothing.
fn until(random: &mut Rng) -> Until {
    Until::of([0, 0, 0, 0, 1, 2, 4, 5][random.usize(..8)]).unwrap()
}

fn path(random: &mut Rng) -> Name {
    random.choice(PATHS).unwrap().parse().unwrap()
}

fn act(random: &mut Rng) -> Act {
    match random.u8(..10) {
        6 => Act::Setgid(Id::One(*random.choice(&IDS[..4]).unwrap())),
        7 => Act::Plain(random.choice(PlainCall::ALL).unwrap().0),
        8 | 9 => {
            let path = path(random);
            let text = match random.u8(..7) {
                0 => "any".to_owned(),
                1 | 2 => path.to_string(),
                3 | 4 => format!("{}??????", path.to_string().trim_end_matches("Abc123")),
                _ => format!("{path}/"),
            };
            // The longest one is too long for a rule, and some have no stem.
            let place = text.parse().unwrap_or(Place::Any);
            Act::File(random.choice(FileCall::ALL).unwrap().0, place)
        }
        0 => Act::Setuid(Id::Any),
        1 => Act::Setuid(Id::One(*random.choice(&IDS[..4]).unwrap())),
        2 => Act::Chmod(*random.choice(&[Bit::User, Bit::Group]).unwrap()),
        _ => Act::Exec { program: name(random), free: random.bool() },
    }
}

/// Whatever can be entered of random items, some of it removed again.
fn database(random: &mut Rng) -> Database {
    let mut database = Database::default();
    for _ in 0..random.u8(..60) {
        let item = item(random);
        let before = database.clone();
        let done = if random.u8(..8) == 0 { database.remove(&item) } else { database.enter(item).map(drop) };
        assert!(done.is_ok() || database == before, "what fails changes nothing");
    }
    database
}

fn question(random: &mut Rng) -> Question {
    let content = |random: &mut Rng| (random.u8(..8) > 0).then(|| digest(random));
    let asked = match random.u8(..9) {
        4 => Asked::Setgid(*random.choice(&IDS).unwrap()),
        5 => Asked::Plain(random.choice(PlainCall::ALL).unwrap().0),
        6..9 => Asked::File(random.choice(FileCall::ALL).unwrap().0, path(random)),
        0 => Asked::Setuid(*random.choice(&IDS).unwrap()),
        1 => Asked::Chmod(*random.choice(&BITS).unwrap()),
        _ => Asked::Exec(content(random)),
    };
    Question { class: random.choice(Class::ALL).unwrap().0, caller: content(random), history: until(random), asked }
}

#[test]
fn reads_any_database_back_from_its_text_and_its_file() {
    let mut random = Rng::with_seed(1);
    for _ in 0..500 {
        let database = database(&mut random);
        assert_eq!(Database::parse(&database.to_string()), Ok(database.clone()));
        assert_eq!(Database::from_bytes(&database.to_bytes()), Ok(database));
    }
}

#[test]
fn answers_in_the_evaluator_as_by_the_rules() {
    let mut random = Rng::with_seed(2);
    let (mut allowed, mut free, mut denied) = (0, 0, 0);
    for _ in 0..500 {
        let database = database(&mut random);
        let table = Table::of(&database, Secret([random.u64(..), random.u64(..)]));
        for _ in 0..50 {
            let question = question(&mut random);
            let answer = table.decide(&question);
            assert_eq!(answer, database.decide(&question), "{question:?} in\n{database}");
            allowed += u32::from(answer.allowed);
            free += u32::from(answer.free);
            denied += u32::from(answer.is_denied());
        }
    }
    assert!(allowed > 300 && free > 30 && denied > 300, "{allowed} {free} {denied}: the questions are too few");
}

/// What items say, one by one.
fn facts(items: impl Iterator<Item = Item>) -> BTreeSet<String> {
    let of = |item| match item {
        Item::Program(name, Program { mode, digests }) => {
            let contents = digests.iter().map(|digest| format!("{name} {digest}"));
            contents.chain([format!("{name} {mode}")]).collect()
        }
        other => vec![other.to_string()],
    };
    items.flat_map(of).collect()
}

#[test]
fn leads_from_one_database_to_another_by_the_changes() {
    let mut random = Rng::with_seed(3);
    for _ in 0..1000 {
        let (from, to) = (database(&mut random), database(&mut random));
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for change in changes(&from, &to) {
            match change {
                Change::Added(item) => added.push(item),
                Change::Removed(item) => removed.push(item),
            }
        }
        let (added, removed) = (facts(added.into_iter()), facts(removed.into_iter()));
        let (has, goal) = (facts(from.items()), facts(to.items()));
        assert!(removed.is_subset(&has) && added.is_subset(&goal));
        // A line of a program that has changed also says what has not.
        let gone: BTreeSet<String> = removed.difference(&goal).cloned().collect();
        let reached: BTreeSet<String> = has.difference(&gone).chain(&added).cloned().collect();
        assert_eq!(reached, goal, "from\n{from}");
        assert_eq!(changes(&to, &to), []);
    }
}

#[test]
fn takes_over_everything_that_is_new_once() {
    let mut random = Rng::with_seed(4);
    let mut merged = 0;
    for _ in 0..1000 {
        let (mut own, other) = (database(&mut random), database(&mut random));
        let before = own.clone();
        let Ok(new) = own.merge(&other) else { continue };
        merged += 1;
        assert_eq!(new > 0, own != before);
        assert_eq!(own.merge(&other), Ok(0), "everything is there");
        for rule in before.rules() {
            assert!(own.rules().any(|kept| kept == rule), "{rule}");
        }
    }
    assert!(merged > 50, "{merged}");
}

#[test]
fn refuses_or_reads_any_damage() {
    let mut random = Rng::with_seed(5);
    for _ in 0..500 {
        let mut bytes = database(&mut random).to_bytes();
        for _ in 0..random.u8(1..4) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        if let Ok(read) = Database::from_bytes(&bytes) {
            assert_eq!(read.to_bytes(), bytes);
        }
    }
}
