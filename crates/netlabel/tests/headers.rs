//! The headers for BPF programs against this crate: the same bytes, the same label or the same reason, under the sanitizers
//! of the C compiler. And that clang compiles them for BPF.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use fastrand::Rng;
use tollgate_netlabel::{
    Categories, Doi, Label, Level, ReadError,
    calipso::Calipso,
    cipso::{Cipso, Tag},
    dsm::Dsm,
    ipv4, ipv6,
    sealed::{Addresses, Claim, Flow, Key, Receiver, SealError, Sealed},
};

/// `TG_LABEL_CATEGORIES` and `TG_IPV6_BUFFER`.
const CATEGORIES: u16 = 1024;
const BUFFER: usize = 256;
const HIGH_CATEGORY: i32 = 21;
const LONG_HEADER: i32 = 22;

const CASES: usize = 60_000;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The test program, compiled once.
fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("netlabel-headers");
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
            .args(["-Wall", "-Wextra", "-Werror", "-I"])
            .arg(here().join("bpf"))
            .arg(here().join("tests/headers.c"))
            .arg("-o")
            .arg(&program)
            .status()
            .unwrap();
        assert!(compiled.success());
        program
    });
    &PROGRAM
}

/// What the C program says of each case. `name` is the test's.
fn answers(name: &str, cases: &[(u8, Vec<u8>)]) -> Vec<String> {
    let mut bytes = Vec::new();
    for (kind, case) in cases {
        bytes.push(*kind);
        bytes.extend(u16::try_from(case.len()).unwrap().to_le_bytes());
        bytes.extend(case);
    }
    let input = program().with_extension(name);
    fs::write(&input, bytes).unwrap();
    let output = Command::new(program()).stdin(fs::File::open(&input).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), cases.len());
    lines
}

/// The numbers of `enum tg_label_error`.
fn number(error: ReadError) -> i32 {
    match error {
        ReadError::Truncated { .. } => 1,
        ReadError::TooLong { .. } => 2,
        ReadError::OptionType { .. } => 3,
        ReadError::OptionLength { .. } => 4,
        ReadError::SecondLabel { .. } => 5,
        ReadError::Padding { .. } => 6,
        ReadError::TooMuchPadding { .. } => 7,
        ReadError::ReservedDoi => 8,
        ReadError::WrongDoi { .. } => 9,
        ReadError::TagType { .. } => 10,
        ReadError::TagLength { .. } => 11,
        ReadError::SecondTag { .. } => 12,
        ReadError::Alignment { .. } => 13,
        ReadError::Category { .. } => 14,
        ReadError::Order { .. } => 15,
        ReadError::Reversed { .. } => 16,
        ReadError::Parameter { .. } => 17,
        ReadError::Compartments { .. } => 18,
        ReadError::Checksum { .. } => 19,
        ReadError::Version { .. } => 20,
        other => panic!("{other} has no number"),
    }
}

/// A label as C prints its members, but for the place of the option: option, tag, domain, sensitivity, context, node, key,
/// window, generation, MAC, then the categories.
fn members(label: &Label) -> Vec<u64> {
    let sealed_members = |option: u64, doi: u64, sealed: &Sealed| {
        let numbers = [sealed.context, sealed.node.into(), sealed.key.into()].map(u64::from);
        let low = [sealed.window, sealed.generation].map(u64::from);
        [&[option, 129, doi, 0], &numbers[..], &low, &[sealed.mac]].concat()
    };
    let level_members = |option: u64, tag: u64, doi: Doi, level: &Level| {
        vec![option, tag, doi.number().into(), level.sensitivity.into(), 0, 0, 0, 0, 0, 0]
    };
    let mut categories = &Categories::new();
    let mut all = match label {
        Label::Cipso(Cipso { doi, tag: Tag::Local(sid) }) => {
            vec![134, 128, doi.number().into(), 0, u64::from(*sid), 0, 0, 0, 0, 0]
        }
        Label::Cipso(Cipso { doi, tag }) => {
            let kind = match tag {
                Tag::Bitmap(_) => 1,
                Tag::Enumerated(_) => 2,
                _ => 5,
            };
            let level = tag.level().unwrap();
            categories = &level.categories;
            level_members(134, kind, *doi, level)
        }
        Label::Dsm(dsm) => vec![134, 7, 0x1000_1000, 0, dsm.context.into(), dsm.node.into(), 0, 0, 0, 0],
        Label::Calipso(calipso) => {
            categories = &calipso.level.categories;
            level_members(7, 0, calipso.doi, &calipso.level)
        }
        Label::Sealed { doi: Some(doi), sealed } => sealed_members(134, doi.number().into(), sealed),
        Label::Sealed { doi: None, sealed } => sealed_members(0, 0, sealed),
    };
    let bit = |word: u16, at: u16| u64::from(categories.contains(word * 64 + at)) << at;
    all.extend((0..CATEGORIES / 64).map(|word| (0..64).map(|at| bit(word, at)).sum::<u64>()));
    all
}

/// What Rust says, in the form of C's answers: the reason's number, or the members.
fn expected(kind: u8, bytes: &[u8]) -> Result<Option<Vec<u64>>, i32> {
    let is_long = kind == b'6' && bytes.len() > BUFFER && usize::from(bytes[1]) == bytes.len() / 8 - 1;
    if is_long && bytes.len().is_multiple_of(8) {
        return Err(LONG_HEADER);
    }
    let read = if kind == b'4' { Label::in_ipv4(bytes) } else { Label::in_ipv6(bytes) };
    let Some(label) = read.map_err(number)? else { return Ok(None) };
    let level = match &label {
        Label::Cipso(cipso) => cipso.tag.level(),
        Label::Calipso(calipso) => Some(&calipso.level),
        _ => None,
    };
    if level.and_then(|level| level.categories.highest()).is_some_and(|highest| highest >= CATEGORIES) {
        return Err(HIGH_CATEGORY);
    }
    let mut members = members(&label);
    if members[0] == 0 {
        members[0] = if kind == b'4' { ipv4::EXPERIMENT } else { ipv6::EXPERIMENT }.into();
    }
    Ok(Some(members))
}

/// What C said, in the same form.
fn said(line: &str) -> Result<Option<Vec<u64>>, i32> {
    let mut numbers = line.split(' ');
    match numbers.next().unwrap().parse() {
        Ok(0) => {}
        error => return Err(error.unwrap()),
    }
    let mut members: Vec<u64> = numbers.map(|number| number.parse().unwrap()).collect();
    if members.iter().all(|member| *member == 0) {
        return Ok(None);
    }
    // The place of the option.
    members.drain(1..3);
    Ok(Some(members))
}

fn level(random: &mut Rng) -> Level {
    let limit = *random.choice(&[8, 240, 1024, 65535]).unwrap();
    let mut level = Level::new(random.u8(..), []);
    for _ in 0..random.u8(0..=8) {
        let low = random.u16(..limit);
        let span = *random.choice(&[1, 4, 150]).unwrap();
        level.categories.insert_range(low..=low.saturating_add(random.u16(..span)));
    }
    level
}

/// A good case of one of the formats, or `None` if its level does not fit.
fn good(random: &mut Rng) -> Option<(u8, Vec<u8>)> {
    let doi = Doi::new(random.u32(1..)).unwrap();
    let sealed = Sealed {
        key: random.u8(..),
        window: random.u16(..),
        node: random.u16(..),
        generation: random.u16(..),
        context: random.u32(..),
        mac: random.u64(..),
    };
    let cipso = |tag| Cipso { doi, tag }.write_words().ok();
    let option = match random.u8(..9) {
        0 | 1 => cipso(Tag::Bitmap(level(random)))?,
        2 => cipso(Tag::Enumerated(level(random)))?,
        3 => cipso(Tag::Ranges(level(random)))?,
        4 => cipso(Tag::Local(random.u32(..)))?,
        5 => Dsm { context: random.u32(..), node: random.u32(..) }.write(),
        6 if random.bool() => sealed.write_cipso(doi),
        6 => ipv4::pad(sealed.write_ipv4()),
        7 => return Some((b'6', ipv6::header(17, &sealed.write_ipv6()))),
        _ => return Some((b'6', ipv6::header(17, &Calipso { doi, level: level(random) }.write().ok()?))),
    };
    Some((b'4', option))
}

/// Other options and padding before it and behind.
fn surrounded((kind, bytes): (u8, Vec<u8>), random: &mut Rng) -> (u8, Vec<u8>) {
    let before: &[u8] = match (kind, random.u8(..8)) {
        (b'4', 0) => &[1, 1, 1, 1],
        (b'4', 1) => &[148, 4, 0, 0],
        (b'6', 0) => &[0, 1, 1, 0, 5, 2, 0, 0],
        (b'6', 1) => &[5, 2, 0, 0, 1, 2, 0, 0],
        // As long as C's buffer.
        (b'6', 2) => &[&[5, 254], &[0; 254][..]].concat(),
        _ => return (kind, bytes),
    };
    if kind == b'4' {
        return (kind, [before, &bytes].concat());
    }
    let words = usize::from(bytes[1]) + before.len() / 8;
    (kind, [&[bytes[0], u8::try_from(words).unwrap()], before, &bytes[2..]].concat())
}

fn damaged((kind, mut bytes): (u8, Vec<u8>), random: &mut Rng) -> (u8, Vec<u8>) {
    for _ in 0..random.u8(0..=2) {
        let (at, any) = (random.usize(..bytes.len()), random.u8(..));
        // Numbers at the limits find more errors than random bytes.
        bytes[at] = *random.choice(&[0, 1, 2, 5, 7, 0x1e, 0x7f, 0x80, 129, 134, 158, 0xff, any]).unwrap();
    }
    if random.u8(..16) == 0 {
        let doi = if kind == b'4' { 2 } else { 4 };
        bytes[doi..doi + 4].fill(0);
    }
    if random.u8(..8) == 0 {
        bytes.truncate(random.usize(..=bytes.len()));
    }
    if random.u8(..8) == 0 {
        bytes = std::iter::repeat_with(|| random.u8(..)).take(bytes.len()).collect();
    }
    (kind, bytes)
}

#[test]
fn reads_and_refuses_what_rust_does_for_the_same_reasons() {
    let mut random = Rng::with_seed(1);
    let mut cases = Vec::new();
    while cases.len() < CASES {
        let Some(case) = good(&mut random) else { continue };
        let case = surrounded(case, &mut random);
        let bytes = damaged(case, &mut random);
        cases.push(with_checksum(bytes, &mut random));
    }
    let mut seen = [0; 23];
    for ((kind, bytes), line) in cases.iter().zip(answers("labels", &cases)) {
        let expected = expected(*kind, bytes);
        assert_eq!(said(&line), expected, "IPv{}: {bytes:02x?}: {line}", char::from(*kind));
        seen[expected.map_or_else(|error| error as usize, |_| 0)] += 1;
    }
    // Every reason must occur, or this test proves little; no reader here can be given another option's type.
    let never: Vec<usize> = (0..seen.len()).filter(|reason| seen[*reason] == 0).collect();
    assert_eq!(never, [3], "{seen:?}");
}

/// With the checksum put right half of the time, so that what comes after it is tested too.
fn with_checksum((kind, mut bytes): (u8, Vec<u8>), random: &mut Rng) -> (u8, Vec<u8>) {
    if kind == b'6'
        && random.bool()
        && let Err(ReadError::Checksum { computed, .. }) = Label::in_ipv6(&bytes)
    {
        let option = ipv6::label(&bytes).unwrap().unwrap();
        let at = option.as_ptr() as usize - bytes.as_ptr() as usize + 8;
        bytes[at..at + 2].copy_from_slice(&computed.to_le_bytes());
    }
    (kind, bytes)
}

/// The members of `struct tg_netlabel` as its bytes: of a level in the tag, or of a sealed label.
fn structure(option: u8, tag: u32, doi: u32, level: &Level, sealed: Option<&Sealed>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let bit = |word: u16, at: u16| u64::from(level.categories.contains(word * 64 + at)) << at;
    for word in 0..CATEGORIES / 64 {
        bytes.extend((0..64).map(|at| bit(word, at)).sum::<u64>().to_le_bytes());
    }
    bytes.extend(sealed.map_or(0, |sealed| sealed.mac).to_le_bytes());
    let [context, node, key] = sealed.map_or([0; 3], |sealed| [sealed.context, sealed.node.into(), sealed.key.into()]);
    for member in [option.into(), 0, 0, tag, doi, level.sensitivity.into(), context, node, key] {
        bytes.extend(u32::to_le_bytes(member));
    }
    let low = sealed.map_or([0; 2], |sealed| [sealed.window, sealed.generation]);
    low.iter().for_each(|low| bytes.extend(low.to_le_bytes()));
    // The structure ends with whole words of 8 bytes.
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// A label as C is given it, and as Rust writes it; nothing if it has no room in its option.
fn written(random: &mut Rng) -> (Vec<u8>, Vec<u8>) {
    let doi = Doi::new(random.u32(1..)).unwrap();
    let mut level = level(random);
    level.categories = level.categories.iter().filter(|category| *category < CATEGORIES).collect();
    let sealed = Sealed {
        key: random.u8(..),
        window: random.u16(..),
        node: random.u16(..),
        generation: random.u16(..),
        context: random.u32(..),
        mac: random.u64(..),
    };
    let cipso = |number, tag: fn(Level) -> Tag| {
        let given = structure(ipv4::CIPSO, number, doi.number(), &level, None);
        (given, Cipso { doi, tag: tag(level.clone()) }.write_words().unwrap_or_default())
    };
    let of_sealed = |option| structure(option, 129, 0, &Level::default(), Some(&sealed));
    match random.u8(..6) {
        0 => cipso(1, Tag::Bitmap),
        1 => cipso(2, Tag::Enumerated),
        2 => cipso(5, Tag::Ranges),
        3 => (of_sealed(ipv4::EXPERIMENT), ipv4::pad(sealed.write_ipv4())),
        4 => (of_sealed(ipv6::EXPERIMENT), ipv6::header(0, &sealed.write_ipv6())),
        _ => {
            let given = structure(ipv6::CALIPSO, 0, doi.number(), &level, None);
            (given, ipv6::header(0, &Calipso { doi, level: level.clone() }.write().unwrap()))
        }
    }
}

#[test]
fn writes_what_rust_does_and_nothing_that_has_no_room() {
    let mut random = Rng::with_seed(3);
    let (given, expected): (Vec<_>, Vec<_>) = std::iter::repeat_with(|| written(&mut random)).take(20_000).unzip();
    let cases: Vec<(u8, Vec<u8>)> = given.into_iter().map(|bytes| (b'o', bytes)).collect();
    for ((expected, answer), (_, case)) in expected.iter().zip(answers("written", &cases)).zip(&cases) {
        let expected: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(answer, expected, "{case:02x?}");
    }
    assert!(expected.iter().filter(|bytes| bytes.is_empty()).count() > 500, "labels without room must occur");
}

#[test]
fn computes_the_same_macs_and_windows() {
    let mut random = Rng::with_seed(2);
    let (mut cases, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..2_000 {
        let bytes = |random: &mut Rng| std::array::from_fn::<u8, 16, _>(|_| random.u8(..));
        let key = Key { number: 0, secret: bytes(&mut random) };
        let (source, destination) = (bytes(&mut random), bytes(&mut random));
        let four = |bytes: [u8; 16]| *bytes.first_chunk::<4>().unwrap();
        let (addresses, octets) = if random.bool() {
            (Addresses::V6(source.into(), destination.into()), [source, destination].concat())
        } else {
            let octets = [four(source), four(destination)].concat();
            (Addresses::V4(four(source).into(), four(destination).into()), octets)
        };
        let flow = Flow { addresses, protocol: random.u8(..), ports: (random.u16(..), random.u16(..)) };
        let (doi, node) = (Doi::new(random.u32(1..)).unwrap(), random.u16(..));
        let claim = Claim { context: random.u32(..), node, generation: random.u64(..), window: random.u64(..) };
        expected.push(Sealed::seal(&claim, &flow, doi, &key).mac.to_string());
        let mut case = [&key.secret[..], &octets].concat();
        case.extend([flow.ports.0.to_be_bytes(), flow.ports.1.to_be_bytes()].as_flattened());
        case.extend([flow.protocol, 1]);
        case.extend(claim.node.to_be_bytes());
        case.extend([doi.number().to_be_bytes(), claim.context.to_be_bytes()].as_flattened());
        case.extend([claim.generation.to_be_bytes(), claim.window.to_be_bytes()].as_flattened());
        cases.push((b'm', case));

        let sealed = Sealed { key: 0, window: random.u16(..), node: 0, generation: 0, context: 0, mac: 0 };
        let now = if random.bool() { random.u64(..) } else { random.u64(..1 << 17) };
        let receiver = Receiver { doi, keys: &[], generations: &[], now, tolerance: u16::MAX };
        let fresh = !matches!(sealed.open(&flow, &receiver), Err(SealError::Window { .. }));
        cases.push((b'w', [&sealed.window.to_le_bytes()[..], &now.to_le_bytes()].concat()));
        expected.push(if fresh { "1" } else { "0" }.to_owned());
    }
    for ((expected, answer), (kind, case)) in expected.iter().zip(answers("macs", &cases)).zip(&cases) {
        // Of a window, the second word: whether it is fresh.
        let answer = answer.split(' ').next_back().unwrap();
        assert_eq!(answer, expected, "{}: {case:02x?}", char::from(*kind));
    }
}

#[test]
fn compiles_for_bpf_each_header_by_itself() {
    for header in ["netlabel.h", "calipso.h", "sealed.h", "write.h"] {
        let mut clang = Command::new(std::env::var_os("CLANG").unwrap_or_else(|| "clang".into()))
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-Wall", "-Wextra", "-Werror", "-x", "c", "-c", "-"])
            .args(["-o", "/dev/null", "-I/usr/include/x86_64-linux-gnu", "-I"])
            .arg(here().join("bpf"))
            .stdin(Stdio::piped())
            .spawn()
            .expect("clang with the BPF target is needed: install the package clang, or set CLANG");
        let mut input = clang.stdin.take().unwrap();
        writeln!(input, "#include \"{header}\"\n#include \"{header}\"").unwrap();
        drop(input);
        assert!(clang.wait().unwrap().success(), "{header}");
    }
}
