use tollgate_abi::tables::{TG_ASK_CHANGE, TG_ASK_MEMBER, TG_ASK_TRANSITION, TG_LEVELS, tg_context, tg_question};

use super::*;
use crate::{
    decide::{self, Levels, Tables},
    fuzz,
    origin::Source,
    sepol::{self, CilFile, Options},
};

fn built() -> Built {
    let file = CilFile { name: "test.cil".into(), text: include_bytes!("../dump/everything.cil").to_vec() };
    Built::from_compiled(sepol::compile(&[file], &Options::default()).unwrap()).unwrap()
}

#[test]
fn gives_back_what_was_built() {
    let folder = tempfile::tempdir().unwrap();
    let (mut built, path) = (built(), folder.path().join("policy"));
    built.origin = Some(Origin::now(vec![Source::new("test.cil", b"(type a)")]));
    built.write(&path).unwrap();
    let read = Built::open(&path).unwrap();
    assert_eq!(read.policy, built.policy);
    assert_eq!((&read.image, &read.model, &read.tables), (&built.image, &built.model, &built.tables));
    assert_eq!((&read.levels, &read.lines, &read.file_contexts), (&built.levels, &built.lines, &built.file_contexts));
    assert!(!read.lines.statements.is_empty() && !read.levels.is_empty());
    assert_eq!(read.origin, built.origin);
}

/// The same as the format before wrote it.
fn without_origin(built: &Built) -> Vec<u8> {
    let bytes = built.to_bytes();
    let (head, table, sections) = (&bytes[..8], &bytes[HEADER_LENGTH..TABLE_END - ENTRY], &bytes[TABLE_END..]);
    let mut old = head.to_vec();
    old.extend(WITHOUT_ORIGIN.to_le_bytes());
    old.extend((SECTIONS.len() as u32 - 1).to_le_bytes());
    for entry in table.chunks(ENTRY) {
        let offset = u64::from_le_bytes(entry[4..12].try_into().unwrap()) - ENTRY as u64;
        old.extend(&entry[..4]);
        old.extend(offset.to_le_bytes());
        old.extend(&entry[12..]);
    }
    old.extend(sections);
    old
}

#[test]
fn reads_the_format_before_which_said_nothing_of_sources() {
    let folder = tempfile::tempdir().unwrap();
    let (built, path) = (built(), folder.path().join("policy"));
    fs::write(&path, without_origin(&built)).unwrap();
    let read = Built::open(&path).unwrap();
    assert_eq!((&read.policy, &read.file_contexts, read.origin), (&built.policy, &built.file_contexts, None));
}

#[test]
fn joins_the_sections_of_either_format_to_the_same_bytes() {
    let built = built();
    for (bytes, count) in [(built.to_bytes(), 7), (without_origin(&built), 6)] {
        let sections = split(&bytes).unwrap();
        assert_eq!(sections.len(), count);
        assert_eq!(sections[1], (Section::Model, &built.model[..]));
        let contents: Vec<&[u8]> = sections.into_iter().map(|(_, content)| content).collect();
        assert!(join(&contents) == bytes);
    }
    assert!(split(&built.to_bytes()[1..]).is_err());
}

#[test]
fn lays_tables_of_an_earlier_version_out_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (new, path) = (built(), folder.path().join("policy"));
    let mut old = built();
    // What else is in them, this program cannot know.
    old.tables[4..8].copy_from_slice(&1_u32.to_ne_bytes());
    old.tables[8..].fill(0xff);
    old.levels.clear();
    old.write(&path).unwrap();
    let read = Built::open(&path).unwrap();
    assert_eq!((&read.tables, &read.levels), (&new.tables, &new.levels));
    let answering = Answering::open(&path).unwrap();
    assert_eq!((&answering.tables, &answering.levels), (&new.tables, &new.levels));
    old.tables[4..8].copy_from_slice(&99_u32.to_ne_bytes());
    assert!(matches!(Built::from_bytes(&old.to_bytes()), Err(BuiltError::Damaged(_))));
}

#[test]
fn is_told_apart_by_what_it_decides_and_labels_and_not_by_what_it_was_built_from() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, change: &dyn Fn(&mut Built)| {
        let (mut built, path) = (built(), folder.path().join(name));
        change(&mut built);
        built.write(&path).unwrap();
        Identity::open(&path).unwrap()
    };
    let one = write("one", &|_| {});
    let other = write("other", &|built| built.origin = Some(Origin::now(Vec::new())));
    let labels = write("labels", &|built| built.file_contexts.push_str("/x <<none>>\n"));
    assert!(one.is_like(&other) && other.origin.is_some());
    assert!(!one.is_like(&labels));
}

#[test]
fn writes_behind_a_link_and_to_what_is_no_file() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let built = built();
    symlink("policy", path("link")).unwrap();
    fs::write(path("policy"), "an old one").unwrap();
    built.write(&path("link")).unwrap();
    assert!(path("link").is_symlink());
    assert_eq!(fs::read(path("policy")).unwrap(), built.to_bytes());
    symlink("/dev/null", path("null")).unwrap();
    built.write(&path("null")).unwrap();
    assert!(path("null").is_symlink(), "a device is not replaced");
    assert!(matches!(built.write(folder.path()), Err(BuiltError::Io { what: "write", .. })));
}

#[test]
fn rejects_a_sparse_file_that_claims_more_than_memory_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy");
    let mut head = built().to_bytes();
    head.truncate(TABLE_END);
    let (last, size) = (TABLE_END - ENTRY, 1_u64 << 42);
    let offset = u64::from_le_bytes(head[last + 4..last + 12].try_into().unwrap());
    head[last + 12..].copy_from_slice(&size.to_le_bytes());
    fs::write(&path, head).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(offset + size).unwrap();
    assert!(matches!(Built::open(&path), Err(BuiltError::Damaged(_))));
}

#[test]
fn rejects_a_file_cut_short_wherever_it_is_cut_and_one_that_goes_on() {
    let mut bytes = built().to_bytes();
    for end in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        assert!(Built::from_bytes(&bytes[..end]).is_err(), "{end} of {}", bytes.len());
    }
    bytes.push(0);
    assert!(matches!(Built::from_bytes(&bytes), Err(BuiltError::Damaged(_))));
}

#[test]
fn rejects_another_format_and_what_is_no_built_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy");
    let mut bytes = built().to_bytes();
    bytes[8] += 1;
    assert!(matches!(Built::from_bytes(&bytes), Err(BuiltError::Version { found: 3 })));
    fs::write(&path, "(type a)").unwrap();
    assert!(matches!(Built::open(&path), Err(BuiltError::NotBuilt(_))));
    assert!(matches!(Built::open(folder.path()), Err(BuiltError::Io { what: "read", .. })));
}

#[test]
fn rejects_tables_of_another_policy() {
    let mut one = built();
    one.policy.types.pop();
    assert!(matches!(one.server(), Err(BuiltError::Damaged(_))));
}

#[test]
fn fuzz_built_policies_answer_or_are_errors() {
    let bytes = built().to_bytes();
    let mut whole = 0_u64;
    fuzz::run(&[&bytes], |bytes| {
        if let Ok(built) = Built::from_bytes(bytes) {
            whole += 1;
            let mut levels = Levels::new(&built.levels).unwrap();
            ask_everything(&Tables::new(&built.tables).unwrap(), &mut levels, whole);
        }
    });
    assert!(whole > 0, "no mutation was read whole");
}

/// The kernel's tables may lie: whatever is in them, an answer comes.
#[test]
fn fuzz_tables_answer_whatever_is_in_them() {
    let built = built();
    let mut answered = 0_u64;
    fuzz::run(&[&built.tables], |bytes| {
        let Ok(tables) = Tables::new(bytes) else { return };
        answered += 1;
        ask_everything(&tables, &mut Levels::new(&built.levels).unwrap(), answered);
    });
    assert!(answered > 0, "no mutation kept its header");
}

/// Asks each kind of question a few times, with identifiers that are there and with some that are not.
fn ask_everything(tables: &Tables, levels: &mut Levels, seed: u64) {
    let random = &mut fastrand::Rng::with_seed(seed);
    for ask in [TG_ASK_TRANSITION, TG_ASK_MEMBER, TG_ASK_CHANGE] {
        let mut identifier = || if random.u32(..8) == 0 { u32::MAX } else { random.u32(..12) };
        let mut context = || tg_context {
            user: identifier() as u16,
            role: identifier() as u16,
            type_: identifier(),
            low: identifier() % TG_LEVELS,
            high: identifier(),
        };
        let (source, target, task) = (context(), context(), context());
        let question = tg_question { source, target, task, class: identifier(), ask };
        if let Some(decision) = tables.decide(levels, &question) {
            let _ = tables.extend(&decision, 0x12);
        }
        tables.validate(levels, &question);
        tables.valid(levels, &source);
        tables.label(levels, &question, None);
        tables.label(levels, &question, decide::name("a name").as_ref());
    }
}
