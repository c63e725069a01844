//! Known answers, and what is refused.

use super::{Cipso, Tag};
use crate::{Categories, Doi, Level, ReadError, WriteError};

/// What SELinux on Debian's 6.1 sends for s3:c0,c1 in domain 1: 11 bytes, which the kernel fills to 12.
const OF_SELINUX: [u8; 11] = [0x86, 11, 0, 0, 0, 1, 1, 5, 0, 3, 0xc0];
/// The same label with a bitmap that fills the last word, which that SELinux reads.
const WHOLE_WORDS: [u8; 12] = [0x86, 12, 0, 0, 0, 1, 1, 6, 0, 3, 0xc0, 0];

fn in_domain_1(tag: Tag) -> Cipso {
    Cipso { doi: Doi::new(1).unwrap(), tag }
}

/// An option of domain 1 with this tag.
fn option(tag: &[u8]) -> Vec<u8> {
    [&[134, 6 + tag.len() as u8, 0, 0, 0, 1], tag].concat()
}

fn read(tag: &[u8]) -> Result<Tag, ReadError> {
    Cipso::read(&option(tag)).map(|cipso| cipso.tag)
}

fn written(tag: Tag) -> Vec<u8> {
    in_domain_1(tag).write().unwrap().split_off(6)
}

#[test]
fn reads_and_writes_what_selinux_sends() {
    let label = in_domain_1(Tag::Bitmap(Level::new(3, [0, 1])));
    assert_eq!(Cipso::read(&OF_SELINUX), Ok(label.clone()));
    assert_eq!(Cipso::read(&WHOLE_WORDS), Ok(label.clone()));
    assert_eq!(label.write(), Ok(OF_SELINUX.to_vec()));
    assert_eq!(label.write_words(), Ok(WHOLE_WORDS.to_vec()));
}

#[test]
fn reads_and_writes_lists_and_ranges_as_netlabel_does() {
    let level = Level::new(5, [0, 1, 2, 7, 300, 301]);
    let list = [2, 16, 0, 5, 0, 0, 0, 1, 0, 2, 0, 7, 1, 44, 1, 45];
    assert_eq!(written(Tag::Enumerated(level.clone())), list);
    assert_eq!(read(&list), Ok(Tag::Enumerated(level.clone())));
    // The lower end of the last range is 0, and left out.
    let ranges = [5, 14, 0, 5, 1, 45, 1, 44, 0, 7, 0, 7, 0, 2];
    assert_eq!(written(Tag::Ranges(level.clone())), ranges);
    assert_eq!(read(&ranges), Ok(Tag::Ranges(level.clone())));
    let with_0 = [&[5, 16], &ranges[2..], &[0, 0]].concat();
    assert_eq!(read(&with_0), Ok(Tag::Ranges(level)));
    let above_0 = Level::new(0, [9, 65534]);
    assert_eq!(written(Tag::Ranges(above_0)), [5, 12, 0, 0, 255, 254, 255, 254, 0, 9, 0, 9]);
}

#[test]
fn reads_the_fixed_length_that_routers_like() {
    // The draft, section 3.4.2.6: a bitmap of 10 bytes, an option of 20.
    let tag = [1, 14, 0, 3, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!((option(&tag).len(), read(&tag)), (20, Ok(Tag::Bitmap(Level::new(3, [0, 1])))));
}

#[test]
fn reads_levels_without_categories_in_each_tag() {
    let tags: [fn(Level) -> Tag; 3] = [Tag::Bitmap, Tag::Enumerated, Tag::Ranges];
    for (kind, tag) in [1, 2, 5].into_iter().zip(tags) {
        assert_eq!(written(tag(Level::new(255, []))), [kind, 4, 0, 255]);
        assert_eq!(read(&[kind, 4, 0, 255]), Ok(tag(Level::new(255, []))));
    }
    // NetLabel sends a byte of 0 if the set of categories is there and empty.
    assert_eq!(read(&[1, 5, 0, 0, 0]), Ok(Tag::Bitmap(Level::default())));
}

#[test]
fn reads_and_writes_the_local_tag_of_linux() {
    let sid = 0x0102_0304_u32;
    let tag = [&[128, 6], &sid.to_ne_bytes()[..]].concat();
    assert_eq!(read(&tag), Ok(Tag::Local(sid)));
    assert_eq!(written(Tag::Local(sid)), tag);
    assert_eq!(read(&[128, 5, 1, 2, 3]), Err(ReadError::TagLength { tag: 128, length: 5 }));
    assert_eq!(read(&[128, 7, 1, 2, 3, 4, 5]), Err(ReadError::TagLength { tag: 128, length: 7 }));
}

#[test]
fn fills_the_room_that_options_have_and_refuses_more() {
    let bitmap = |category| in_domain_1(Tag::Bitmap(Level::new(0, [category]))).write();
    assert_eq!(bitmap(239).map(|option| option.len()), Ok(40));
    assert_eq!(bitmap(240), Err(WriteError::Category { category: 240, highest: 239 }));
    let list = |count: u16| in_domain_1(Tag::Enumerated(Level::new(0, (0..count).map(|n| n * 3)))).write();
    assert_eq!(list(15).map(|option| option.len()), Ok(40));
    assert_eq!(list(16), Err(WriteError::Room { bytes: 32 }));
    let ranges =
        |first: u16, count: u16| in_domain_1(Tag::Ranges(Level::new(0, (0..count).map(|n| first + n * 3)))).write();
    assert_eq!(ranges(0, 8).map(|option| option.len()), Ok(40));
    assert_eq!(ranges(1, 8), Err(WriteError::Room { bytes: 32 }));
    assert_eq!(ranges(1, 7).map(|option| option.len()), Ok(38));
    for tag in [Tag::Enumerated, Tag::Ranges] {
        let error = WriteError::Category { category: 65535, highest: 65534 };
        assert_eq!(in_domain_1(tag(Level::new(0, [65535]))).write(), Err(error));
    }
}

#[test]
fn refuses_wrong_lengths_of_the_option() {
    let with = |length: u8| {
        let mut option = OF_SELINUX;
        option[1] = length;
        Cipso::read(&option)
    };
    let bad = |length| Err(ReadError::OptionLength { kind: 134, length });
    for length in [0, 1, 5, 6, 7, 10] {
        assert_eq!(with(length), bad(length), "{length}");
    }
    for length in [12, 41, 255] {
        assert_eq!(with(length), Err(ReadError::Truncated { needed: length.into(), have: 11 }));
    }
    // No header has room for it; the tag inside would be fine.
    let long = option(&[&[1, 35, 0, 3], &[0; 31][..]].concat());
    assert_eq!(Cipso::read(&long), bad(41));
    assert_eq!(Cipso::read(&[134, 7, 0, 0, 0, 1, 1]), bad(7));
}

#[test]
fn refuses_domain_0_and_other_options() {
    let mut reserved = OF_SELINUX;
    reserved[5] = 0;
    assert_eq!(Cipso::read(&reserved), Err(ReadError::ReservedDoi));
    let mut other = OF_SELINUX;
    other[0] = 130;
    assert_eq!(Cipso::read(&other), Err(ReadError::OptionType { found: 130, expected: 134 }));
}

#[test]
fn refuses_wrong_tags_and_lengths_of_tags() {
    for tag in [0, 3, 7, 127, 129] {
        assert_eq!(read(&[tag, 4, 0, 3]), Err(ReadError::TagType { tag }));
    }
    for tag in [1, 2, 5] {
        assert_eq!(read(&[tag, 3, 0]), Err(ReadError::TagLength { tag, length: 3 }));
        for length in [0, 1, 5, 35, 255] {
            assert_eq!(read(&[tag, length, 0, 3]), Err(ReadError::TagLength { tag, length }));
        }
        assert_eq!(read(&[tag, 4, 1, 3]), Err(ReadError::Alignment { value: 1 }));
    }
    // Half a number, which is no problem in a bitmap.
    for tag in [2, 5] {
        assert_eq!(read(&[tag, 5, 0, 3, 0]), Err(ReadError::TagLength { tag, length: 5 }));
    }
}

#[test]
fn refuses_a_second_tag() {
    assert_eq!(read(&[1, 4, 0, 3, 1, 4, 0, 3]), Err(ReadError::SecondTag { tag: 1 }));
    assert_eq!(read(&[1, 4, 0, 3, 0]), Err(ReadError::SecondTag { tag: 0 }));
}

#[test]
fn refuses_lists_that_do_not_ascend() {
    let order = |previous, next| Err(ReadError::Order { previous, next });
    assert_eq!(read(&[2, 8, 0, 3, 0, 5, 0, 4]), order(5, 4));
    assert_eq!(read(&[2, 8, 0, 3, 0, 5, 0, 5]), order(5, 5));
    assert_eq!(read(&[2, 8, 0, 3, 0, 0, 0, 0]), order(0, 0));
}

#[test]
fn refuses_ranges_that_do_not_descend() {
    let order = |previous, next| Err(ReadError::Order { previous, next });
    assert_eq!(read(&[5, 12, 0, 3, 0, 5, 0, 4, 0, 9, 0, 8]), order(4, 9));
    // A common category, which the kernel takes.
    assert_eq!(read(&[5, 12, 0, 3, 0, 9, 0, 8, 0, 8, 0, 7]), order(8, 8));
    assert_eq!(read(&[5, 10, 0, 3, 0, 5, 0, 0, 0, 0]), order(0, 0));
    assert_eq!(read(&[5, 8, 0, 3, 0, 4, 0, 5]), Err(ReadError::Reversed { low: 5, high: 4 }));
    // Neighbours are two ranges where one would do, and valid.
    let mut all = Categories::new();
    all.insert_range(6..=9);
    let level = Level { sensitivity: 3, categories: all };
    assert_eq!(read(&[5, 12, 0, 3, 0, 9, 0, 8, 0, 7, 0, 6]), Ok(Tag::Ranges(level)));
}

#[test]
fn refuses_category_65535_where_the_kernel_takes_it() {
    let error = ReadError::Category { category: 65535 };
    assert_eq!(read(&[2, 6, 0, 3, 255, 255]), Err(error));
    assert_eq!(read(&[5, 8, 0, 3, 255, 255, 255, 255]), Err(error));
    assert_eq!(read(&[2, 6, 0, 3, 255, 254]), Ok(Tag::Enumerated(Level::new(3, [65534]))));
}
