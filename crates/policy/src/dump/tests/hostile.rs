//! Streams that are not what `dump.c` writes.

use super::*;
use crate::{fuzz, tables};

#[test]
fn rejects_a_stream_that_ends_early_wherever_it_ends_and_one_that_goes_on() {
    let mut stream = everything();
    for end in 0..stream.len() {
        assert!(read(&stream[..end]).is_err(), "{end} of {}", stream.len());
    }
    stream.push(0);
    assert_eq!(read(&stream), Err(DumpError::Long));
}

#[test]
fn rejects_sets_of_numbers_that_are_not_there() {
    let set = |words: &[u64]| {
        let count = (words.len() as u32).to_le_bytes();
        count.into_iter().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect::<Vec<u8>>()
    };
    let identifiers = |words: &[u64], greatest| Stream::new(&set(words)).set(greatest);
    assert_eq!(identifiers(&[0, 1 << 6], 70), Ok([70].into_iter().collect()));
    assert!(identifiers(&[0, 1 << 7], 70).is_err(), "too great");
    assert!(identifiers(&[1], 70).is_err(), "identifiers start at 1");
    assert!(identifiers(&[2, 0], 70).is_err() && identifiers(&[0], 0).is_err(), "an empty word at the end");
    assert_eq!(identifiers(&[], 0), Ok(Bits::default()));
    let categories = |words: &[u64], count| Stream::new(&set(words)).categories(count);
    assert_eq!(categories(&[1 << 63 | 1], 64), Ok([0, 63].into_iter().collect()));
    assert!(categories(&[1 << 63], 63).is_err() && categories(&[1], 0).is_err());
}

/// A stream with one of everything in as few bytes as it can have: names and sets are empty, and lists within lists, or
/// with `inner` they too have one element (constraints two).
fn smallest(inner: bool) -> Vec<u8> {
    let context = [1, 1, 1, 0, 0, 0, 0];
    // One permission, four defaults, a constraint without terms and one with one, a validatetrans.
    let (mut class, mut sensitivity): (&[u32], &[u32]) = (&[0; 8], &[0; 3]);
    let (mut category, mut condition): (&[u32], &[u32]) = (&[0; 2], &[0]);
    if inner {
        class = &[0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0];
        (sensitivity, category, condition) = (&[0, 1, 0, 0], &[0, 1, 0], &[1, 2, 0]);
    }
    let lists: &[&[u32]] = &[
        class,                                           // class
        &[0; 4],                                         // type
        &[0, 1],                                         // type alias
        &[0; 3],                                         // role
        &[0; 8],                                         // user
        sensitivity,                                     // sensitivity
        category,                                        // category
        &[0; 2],                                         // boolean
        condition,                                       // condition
        &[0x10, 1, 1, 1, 0, 1],                          // rule
        &[0x100, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], // extended rule
        &[0, 1, 1, 1, 0],                                // transition by name
        &[1, 1, 1, 1],                                   // role transition
        &[1, 1],                                         // role allow
        &[1, 1, 1, 0, 0, 0, 0],                          // range transition
        &[&[1][..], &context].concat(),                  // initial SID
        &[&[1, 0][..], &context].concat(),               // file system
        &[&[0, 0, 1][..], &context].concat(),            // genfs
        &[&[6, 1, 1][..], &context].concat(),            // port
        &[&[0][..], &context, &context].concat(),        // interface
        &[&[4, 0, 0][..], &context].concat(),            // node
    ];
    // Magic, versions, levels, what is unknown; one capability without a name; one of each.
    let head = [MAGIC, VERSION, 33, 0, 0, 1, 0].into_iter().chain([1; 7]);
    let lists = lists.iter().flat_map(|list| [1].into_iter().chain(list.iter().copied()));
    head.chain(lists).chain([0]).flat_map(u32::to_le_bytes).collect()
}

/// Whether each identifier is one of the policy's.
fn is_sound(policy: &Policy) -> bool {
    let [classes, types, roles, users] =
        [policy.classes.len(), policy.types.len(), policy.roles.len(), policy.users.len()];
    let within = |identifier: u32, length: usize| identifier > 0 && (identifier as usize) < length;
    let set = |bits: &Bits, length: usize| bits.iter().all(|bit| within(bit, length));
    let level = |level: &Level| {
        (level.sensitivity as usize) < policy.sensitivities.len()
            && level.categories.iter().all(|category| (category as usize) < policy.categories.len())
    };
    let range = |range: &Range| level(&range.low) && level(&range.high);
    let context = |context: &Context| {
        within(context.user, users)
            && within(context.role, roles)
            && within(context.type_, types)
            && range(&context.range)
    };
    let key = |source, target, class| within(source, types) && within(target, types) && within(class, classes);
    let when =
        |condition: Option<Condition>| condition.is_none_or(|when| (when.condition as usize) < policy.conditions.len());
    let term = |term: &Term| match term {
        Term::In { kind, names, written, .. } => {
            let length = match kind {
                NameKind::User => users,
                NameKind::Role => roles,
                NameKind::Type => types,
            };
            set(names, length) && set(written, types)
        }
        _ => true,
    };
    let logic = |logic: &Logic| !matches!(logic, Logic::Boolean(number) if *number as usize >= policy.booleans.len());
    let terms = policy
        .classes
        .iter()
        .flat_map(|class| class.constraints.iter().map(|one| &one.expression).chain(&class.validatetrans).flatten());
    terms.into_iter().all(term)
        && policy.types.iter().all(|one| (one.bounds as usize) < types && set(&one.set, types))
        && policy.type_aliases.iter().all(|(_, of)| within(*of, types))
        && policy.roles.iter().all(|role| set(&role.types, types) && set(&role.dominates, roles))
        && policy.users.iter().all(|user| set(&user.roles, roles) && range(&user.range) && level(&user.default_level))
        && policy.conditions.iter().flatten().all(logic)
        && policy.rules.iter().all(|rule| {
            key(rule.source, rule.target, rule.class)
                && when(rule.condition)
                && (rule.kind < RuleKind::Transition || within(rule.data, types))
        })
        && policy.extended_rules.iter().all(|rule| key(rule.source, rule.target, rule.class) && when(rule.condition))
        && policy
            .name_transitions
            .iter()
            .all(|each| set(&each.sources, types) && key(each.target, each.result, each.class))
        && policy.role_transitions.iter().all(|each| {
            within(each.role, roles) && within(each.result, roles) && key(each.target, each.target, each.class)
        })
        && policy.role_allows.iter().all(|(old, new)| within(*old, roles) && within(*new, roles))
        && policy.range_transitions.iter().all(|each| key(each.source, each.target, each.class) && range(&each.range))
        && policy.genfs.iter().all(|each| (each.class as usize) < classes && context(&each.context))
        && policy.initial_sids.iter().all(|each| context(&each.context))
        && policy.fs_uses.iter().all(|each| context(&each.context))
        && policy.ports.iter().all(|each| context(&each.context))
        && policy.interfaces.iter().all(|each| context(&each.interface) && context(&each.packet))
        && policy.nodes.iter().all(|each| context(&each.context))
}

/// What counts are checked against must not be more than an element can have: valid policies would be refused.
#[test]
fn reads_elements_of_the_least_size() {
    let policy = read(&smallest(false)).unwrap();
    assert!(is_sound(&policy));
    assert_eq!((policy.rules.len(), policy.interfaces.len(), policy.nodes.len()), (1, 1, 1));
    let policy = read(&smallest(true)).unwrap();
    assert!(is_sound(&policy));
    assert_eq!((policy.classes[1].constraints.len(), policy.conditions[0].len()), (2, 1));
}

#[test]
fn rejects_every_number_that_refers_to_nothing() {
    for good in [smallest(false), smallest(true), everything()] {
        for at in (0..good.len() - 3).step_by(4) {
            for wrong in [0_u32, 2, 3, 20, 300, u32::MAX] {
                let mut stream = good.clone();
                stream[at..at + 4].copy_from_slice(&wrong.to_le_bytes());
                let read = read(&stream);
                assert!(read.as_ref().is_ok_and(is_sound) || read.is_err(), "{wrong} at {at}: {read:?}");
            }
        }
    }
}

#[test]
fn rejects_a_class_with_two_permissions_of_one_name() {
    let text = |name: &str| [&(name.len() as u32).to_le_bytes(), name.as_bytes()].concat();
    let mut stream = everything();
    let (from, to) = (text("entrypoint"), text("execute"));
    let at = stream.windows(from.len()).position(|window| window == from).unwrap();
    stream.splice(at..at + from.len(), to);
    assert_eq!(read(&stream), Err(DumpError::Content("a class with two permissions of one name")));
}

#[test]
fn rejects_another_version() {
    let mut stream = everything();
    stream[4] += 1;
    assert_eq!(read(&stream), Err(DumpError::Version));
}

/// What the child says is not trusted: whatever of it is a policy can be laid out, or is refused.
#[test]
fn fuzz_streams_make_policies_or_errors() {
    let stream = everything();
    let mut read_whole = 0_u64;
    fuzz::run(&[&stream, &smallest(false), &smallest(true)], |bytes| {
        if let Ok(policy) = read(bytes) {
            read_whole += 1;
            assert!(is_sound(&policy), "{policy:?}");
            let _ = tables::build(&policy);
        }
    });
    assert!(read_whole > 0, "no mutation reached the tables");
}
