use super::*;

/// `struct list_head {}` of 16 bytes is 1, `struct file { struct list_head node; }` is 2.
fn file() -> Btf {
    let strings = b"\0list_head\0node\0file\0";
    let structure = |members: u32| 4 << 24 | members;
    let types: [u32; 9] = [1, structure(0), 16, 16, structure(1), 24, 11, 1, 0];
    let mut bytes = vec![0x9f, 0xeb, 1, 0];
    let words = [24, 0, 36, 36, strings.len() as u32].into_iter().chain(types);
    bytes.extend(words.flat_map(u32::to_le_bytes));
    bytes.extend(strings);
    Btf::parse(&bytes).unwrap()
}

#[test]
fn finds_a_link_where_it_lies_and_at_no_offset_that_overflows_to_it() {
    let btf = file();
    assert!(btf.is_node(2, 0, 1));
    for offset in [8, -1, 1 << 29, i32::MAX, i32::MIN] {
        assert!(!btf.is_node(2, offset, 1), "{offset}");
    }
}
