//! What the description of a policy says about binary policies that libsepol's CIL compiler does not make.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use tollgate_policy::{
    dump,
    model::{Bits, NameKind, Party, Policy, Term},
    oracle::Oracle,
    sepol::{self, CilFile, Compiled, Options},
};

const POLICY: &str = "(mls true)
(class file (read write)) (classorder (file))
(sid kernel) (sidorder (kernel)) (sidcontext kernel (u r a ((s) (s))))
(sensitivity s) (sensitivityorder (s)) (sensitivitycategory s (c)) (category c) (categoryorder (c))
(user u) (userrole u r) (userlevel u (s)) (userrange u ((s) (s)))
(role r) (roletype r a) (roletype r b) (type a) (type b) (typeattribute both) (typeattributeset both (a b))
(allow a both (file (read)))
(constrain (file (write)) (eq t1 both))
(validatetrans file (eq u3 u))
";

fn compiled() -> Compiled {
    let file = CilFile { name: "dump.cil".into(), text: POLICY.into() };
    sepol::compile(&[file], &Options::default()).unwrap()
}

/// `bytes` with every `from` become `to`; there is one at least.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let places: Vec<_> = (0..=bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn written(policy: &Policy) -> Bits {
    match policy.classes[1].constraints[0].expression.as_slice() {
        [Term::In { party: Party::Source, kind: NameKind::Type, written, .. }] => written.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn tells_names_as_written_only_where_they_are_a_plain_set() {
    let compiled = compiled();
    let names = written(&dump::read(&compiled.model).unwrap());
    assert!(!names.is_empty());
    // struct type_set in the image (type_set_write): types, an empty negset, flags. A bit map is the size of a word,
    // the length, the count of words, and for each its first bit and bits.
    let map = names.0[0] >> 1;
    let set = |flags| numbers(&[64, 64, 1, 0, map as u32, (map >> 32) as u32, 64, 0, 0, flags]);
    let complement = 2; // TYPE_COMP
    let image = replaced(&compiled.image, &set(0), &set(complement));
    let policy = dump::read(&sepol::read(&image).unwrap().model).unwrap();
    assert_eq!(written(&policy), Bits::default());
}

#[test]
fn takes_a_term_marked_for_target_and_task_as_the_targets() {
    let model = compiled().model;
    // CEXPR_NAMES; CEXPR_USER of CEXPR_XTARGET, then of CEXPR_TARGET, too; CEXPR_EQ.
    let marked = replaced(&model, &numbers(&[5, 16 | 1, 1]), &numbers(&[5, 16 | 8 | 1, 1]));
    for (model, expected) in [(model, Party::Task), (marked, Party::Target)] {
        let policy = dump::read(&model).unwrap();
        match policy.classes[1].validatetrans[0].as_slice() {
            [Term::In { party, kind: NameKind::User, .. }] => assert_eq!(*party, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn keeps_nothing_of_a_policy_that_the_oracle_refuses() {
    let image = compiled().image;
    let truncated = &image[..image.len() - 8];
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    let load = |times| (0..times).for_each(|_| assert!(Oracle::load(truncated).is_err()));
    load(20);
    let before = resident();
    load(2000);
    // What is lost each time is more than 10 KiB.
    assert!(resident() < before + (4 << 20), "{} KiB more than before", (resident() - before) >> 10);
}

#[test]
fn reports_no_class_in_a_gap_of_their_numbers() {
    // A class with a name of 4 bytes and no common, of number 1, with 2 permissions and 1 constraint (class_read), in a
    // table that says how many numbers it has, and how many classes.
    let class = |numbers_of| numbers(&[numbers_of, 1, 4, 0, 1, 2, 2, 1]);
    let image = replaced(&compiled().image, &class(1), &class(2));
    let policy = dump::read(&sepol::read(&image).unwrap().model).unwrap();
    assert_eq!(policy.classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(), ["", "file", ""]);

    let mut oracle = Oracle::load(&image).unwrap();
    let context = oracle.sid("u:r:a:s").unwrap();
    assert_eq!(oracle.access(context, context, 1).allowed, 1);
    for class in [0, 2, 3, 65_537] {
        assert_eq!(oracle.access(context, context, class).allowed, 0);
        assert!(!oracle.validate(context, context, context, class));
        assert_eq!(oracle.transition(context, context, class), None);
    }
}
