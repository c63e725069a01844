//! A page of the kernel's ring buffer, as `trace_pipe_raw` gives it (`events/header_page`, `events/header_event`).

/// Bytes per page: the kernel's default, which it changes only on request (`buffer_subbuf_size_kb`).
pub(super) const PAGE: usize = 4096;
/// Bytes of a page's header: the time of the first record, and how much of the page is filled.
const HEADER: usize = 16;
/// The bits of a page's commit word that count bytes; above them the kernel keeps flags (RB_MISSED_EVENTS,
/// kernel/trace/ring_buffer.c).
const COMMIT_MASK: u64 = 0xf_ffff;
/// `type_len` values other than a record of 4 to 112 bytes.
const TYPE_LONG: u32 = 0;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time difference in a record's header.
const DELTA_BITS: u32 = 27;

/// Calls `each` with the time and the bytes of every record. Reading ends where a page violates the format; the result is
/// then false, and records may be missing.
#[must_use]
pub(super) fn records<'p>(page: &'p [u8], mut each: impl FnMut(u64, &'p [u8])) -> bool {
    let (Some(mut time), Some(filled)) = (wide(page, 0), wide(page, 8)) else { return false };
    let filled = usize::try_from(filled & COMMIT_MASK).unwrap_or(usize::MAX);
    let Some(data) = page[HEADER..].get(..filled) else { return false };
    let mut at = 0;
    while let Some(header) = word(data, at) {
        let (kind, delta) = (header & 31, u64::from(header >> 5));
        let first = || word(data, at + 4).unwrap_or(0);
        time = match kind {
            TIME_EXTEND => time + (u64::from(first()) << DELTA_BITS) + delta,
            TIME_STAMP => (u64::from(first()) << DELTA_BITS) + delta,
            _ => time + delta,
        };
        let (from, to) = match kind {
            PADDING if delta == 0 => return true,
            PADDING | TIME_EXTEND | TIME_STAMP => (0, 0),
            TYPE_LONG => (at + 8, at + 4 + first() as usize),
            words => (at + 4, at + 4 + 4 * words as usize),
        };
        if to > 0 {
            let Some(record) = data.get(from..to) else { return false };
            each(time, record);
        }
        at = match kind {
            TIME_EXTEND | TIME_STAMP => at + 8,
            PADDING => at + 4 + first() as usize,
            _ => to,
        };
    }
    at == data.len()
}

/// The 32-bit number at an offset.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The 64-bit number at an offset.
pub(super) fn wide(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with these words of 32 bits.
    fn page(time: u64, words: &[u32]) -> Vec<u8> {
        let mut bytes = time.to_ne_bytes().to_vec();
        bytes.extend(((4 * words.len() as u64) | (1 << 31)).to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.resize(PAGE, 0);
        bytes
    }

    /// The records, and whether the page is complete.
    fn read(page: &[u8]) -> (Vec<(u64, Vec<u8>)>, bool) {
        let mut all = Vec::new();
        let whole = records(page, |time, record| all.push((time, record.to_vec())));
        (all, whole)
    }

    #[test]
    fn reads_records_of_each_form_with_their_times() {
        let words = [
            1 | 5 << 5, // four bytes, five later
            0xabcd,
            30 | 1 << 5, // one and two to the 27th later
            1,
            29 | 3 << 5, // taken back: skipped
            4,
            TYPE_LONG, // its length has a word of its own
            12,
            7,
            8,
            29, // the rest of the page is empty
            99,
        ];
        let long = [7_u32, 8].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let expected = vec![(105, 0xabcd_u32.to_ne_bytes().to_vec()), (109 + (1 << 27), long)];
        assert_eq!(read(&page(100, &words)), (expected, true));
        assert_eq!(read(&page(100, &[1, 2])), (vec![(100, 2_u32.to_ne_bytes().to_vec())], true));
        assert_eq!(read(&page(100, &[])), (vec![], true));
    }

    #[test]
    fn refuses_what_is_cut_or_too_long() {
        let whole = page(0, &[TYPE_LONG, 4000, 1]);
        assert_eq!(read(&whole), (vec![], false));
        for length in 0..24 {
            assert_eq!(read(&page(0, &[1, 2])[..length]), (vec![], false), "{length}");
        }
        for cut in [&[1, 2, 30][..], &[1, 2, 29 | 1 << 5, 400]] {
            assert!(!read(&page(0, cut)).1, "{cut:?}");
        }
    }
}
