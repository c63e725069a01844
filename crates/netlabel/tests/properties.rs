//! What holds for any label and any bytes: what is written is read back, and fits; what is damaged is refused or another
//! label; what is read can be written again; and nothing panics.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use fastrand::Rng;
use tollgate_netlabel::{
    Doi, Label, Level, WriteError,
    calipso::Calipso,
    cipso::{Cipso, Tag},
    dsm::Dsm,
    ipv4::{self, MAX_OPTIONS},
    ipv6,
    sealed::Sealed,
};

const UDP: u8 = 17;
/// The most bytes of a hop-by-hop header.
const MAX_HEADER: usize = 256 * 8;

/// A header's part with this label, if the format can hold it, written in either length.
fn write(label: &Label, whole_words: bool) -> Result<Vec<u8>, WriteError> {
    Ok(match label {
        Label::Cipso(cipso) if whole_words => cipso.write_words()?,
        Label::Cipso(cipso) => cipso.write()?,
        Label::Dsm(dsm) => dsm.write(),
        Label::Calipso(calipso) => ipv6::header(UDP, &calipso.write()?),
        Label::Sealed { doi: Some(doi), sealed } => sealed.write_cipso(*doi),
        Label::Sealed { doi: None, sealed } if whole_words => ipv4::pad(sealed.write_ipv4()),
        Label::Sealed { doi: None, sealed } => sealed.write_ipv4(),
    })
}

fn read(label: &Label, bytes: &[u8]) -> Option<Label> {
    match label {
        Label::Calipso(_) => Label::in_ipv6(bytes),
        _ => Label::in_ipv4(bytes),
    }
    .ok()
    .flatten()
}

fn doi(random: &mut Rng) -> Doi {
    Doi::new(random.u32(1..)).unwrap()
}

/// Few or many categories, in clusters, up to one of several limits.
fn level(random: &mut Rng) -> Level {
    let limit = *random.choice(&[8, 240, 1952, 65535]).unwrap();
    let mut level = Level::new(random.u8(..), []);
    for _ in 0..random.u8(0..=9) {
        let low = random.u16(..limit);
        let span = *random.choice(&[1, 4, 40]).unwrap();
        let high = low.saturating_add(random.u16(..span));
        level.categories.insert_range(low..=high);
    }
    level
}

fn sealed(random: &mut Rng) -> Sealed {
    Sealed {
        key: random.u8(..),
        window: random.u16(..),
        node: random.u16(..),
        generation: random.u16(..),
        context: random.u32(..),
        mac: random.u64(..),
    }
}

fn label(random: &mut Rng) -> Label {
    let tag = match random.u8(..8) {
        0 => Tag::Bitmap(level(random)),
        1 => Tag::Enumerated(level(random)),
        2 => Tag::Ranges(level(random)),
        3 => Tag::Local(random.u32(..)),
        4 => return Label::Dsm(Dsm { context: random.u32(..), node: random.u32(..) }),
        5 => return Label::Calipso(Calipso { doi: doi(random), level: level(random) }),
        6 => return Label::Sealed { doi: Some(doi(random)), sealed: sealed(random) },
        _ => return Label::Sealed { doi: None, sealed: sealed(random) },
    };
    Label::Cipso(Cipso { doi: doi(random), tag })
}

/// Labels that their formats can hold, with their bytes.
fn written(random: &mut Rng, count: usize) -> Vec<(Label, Vec<u8>)> {
    let mut all = Vec::new();
    while all.len() < count {
        let label = label(random);
        if let Ok(bytes) = write(&label, random.bool()) {
            all.push((label, bytes));
        }
    }
    all
}

#[test]
fn reads_back_what_it_writes_within_the_room_of_a_header() {
    let mut random = Rng::with_seed(1);
    for (label, bytes) in written(&mut random, 20_000) {
        assert_eq!(read(&label, &bytes), Some(label.clone()), "{bytes:02x?}");
        match label {
            Label::Calipso(_) => assert!(bytes.len().is_multiple_of(8) && bytes.len() <= MAX_HEADER, "{bytes:02x?}"),
            _ => assert!(bytes.len() <= MAX_OPTIONS, "{bytes:02x?}"),
        }
    }
}

#[test]
fn refuses_to_write_a_level_only_if_the_format_has_no_room() {
    let mut random = Rng::with_seed(2);
    let (mut fits, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let level = level(&mut random);
        let (highest, count) = (level.categories.highest().unwrap_or(0), level.categories.len());
        let ranges = level.categories.ranges().count();
        let ends = 2 * ranges - usize::from(level.categories.contains(0));
        for (tag, can) in [
            (Tag::Bitmap(level.clone()), highest < 240),
            (Tag::Enumerated(level.clone()), highest < 65535 && count <= 15),
            (Tag::Ranges(level), highest < 65535 && ends <= 15),
        ] {
            assert_eq!(Cipso { doi: doi(&mut random), tag: tag.clone() }.write().is_ok(), can, "{tag:?}");
            *if can { &mut fits } else { &mut refused } += 1;
        }
    }
    assert!(fits > 10_000 && refused > 10_000, "{fits} {refused}");
}

#[test]
fn refuses_every_label_that_is_cut_off() {
    let mut random = Rng::with_seed(3);
    for (label, bytes) in written(&mut random, 4_000) {
        // What follows the option itself is padding.
        let end = match &label {
            Label::Calipso(_) => bytes.len(),
            _ => usize::from(bytes[1]),
        };
        for length in 0..end {
            assert_eq!(read(&label, &bytes[..length]), None, "{:02x?}", &bytes[..length]);
        }
    }
}

#[test]
fn reads_no_damaged_label_as_the_same_label() {
    let mut random = Rng::with_seed(4);
    let (mut other, mut refused) = (0, 0);
    for (label, bytes) in written(&mut random, 1_000) {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= random.u8(1..);
            match read(&label, &damaged) {
                Some(read) if read == label => assert!(is_outside(&label, &bytes, at), "{bytes:02x?} at {at}"),
                Some(_) => other += 1,
                None => refused += 1,
            }
        }
    }
    // Both must occur, or this test proves nothing.
    assert!(other > 500 && refused > 500, "{other} {refused}");
}

/// Whether another value of this byte can give the same label, because it is none of the option's: it is padding, or says
/// what comes after the hop-by-hop header.
fn is_outside(label: &Label, bytes: &[u8], at: usize) -> bool {
    match label {
        Label::Calipso(_) => at == 0 || at >= 4 + usize::from(bytes[3]),
        _ => at >= usize::from(bytes[1]),
    }
}

#[test]
fn reads_random_bytes_without_panic_and_writes_again_what_it_reads() {
    let mut random = Rng::with_seed(5);
    let (mut read, mut refused) = (0, 0);
    let seeds = written(&mut random, 500);
    for _ in 0..200_000 {
        let mut bytes = random.choice(&seeds).unwrap().1.clone();
        for _ in 0..random.u8(0..=3) {
            let at = random.usize(..bytes.len());
            // Numbers at the limits find more errors than random bytes.
            let any = random.u8(..);
            bytes[at] = *random.choice(&[0, 1, 2, 5, 7, 0x7f, 0x80, 134, 158, 0xff, any]).unwrap();
        }
        if random.u8(..8) == 0 {
            let length = random.usize(..=48);
            bytes = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
        }
        for found in [Label::in_ipv4(&bytes), Label::in_ipv6(&bytes)] {
            match found {
                Ok(Some(label)) => {
                    let again = write(&label, true).expect("what was read has room");
                    assert_eq!(self::read(&label, &again), Some(label.clone()), "{bytes:02x?}, {again:02x?}");
                    read += 1;
                }
                Ok(None) => {}
                Err(_) => refused += 1,
            }
        }
    }
    assert!(read > 5_000 && refused > 5_000, "{read} {refused}");
}
