//! A small kernel for tests: an ELF file of x86-64 with a few functions, their types, an operation table and kallsyms.

use crate::{Error, Graph, Image, Symbols};

pub(crate) const TEXT: u64 = 0xffff_ffff_8100_0000;
pub(crate) const RODATA: u64 = 0xffff_ffff_8200_0000;
const DATA: u64 = 0xffff_ffff_8300_0000;
/// Before it, in the same section, is the operation table.
const KALLSYMS: u64 = RODATA + 256;
/// The size of each function, in bytes.
const SLOT: u64 = 32;
/// Functions that do nothing, because a kernel has more than a hundred symbols.
const FILLERS: u64 = 120;

const NAMES: [&str; 10] = [
    "_stext",
    "__x64_sys_open",
    "__x64_sys_getpid",
    "vfs_open",
    "ext_open",
    "security_file_open",
    "security_inode_permission",
    "security_load_policy",
    "ext_release",
    "logs",
];

/// The address of a function.
pub(crate) fn at(name: &str) -> u64 {
    let place = NAMES.iter().position(|other| *other == name).unwrap();
    TEXT + SLOT * place as u64
}

/// The layouts of kallsyms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// 5.10: offsets first.
    OffsetsFirst,
    /// 6.1.y: also the order of the names before the tokens.
    WithOrder,
    /// 6.12: offsets last, non-negative ones absolute.
    OffsetsLast,
    /// 6.18: offsets from the base.
    PlainOffsets,
    /// 7.2: offsets relative to their own places, aligned to four bytes.
    OwnPlaces,
    /// No kallsyms.
    None,
}

/// A relative call or jump in a function.
fn branch(code: &mut Vec<u8>, own: &str, opcode: u8, to: &str) {
    let next = at(own) + code.len() as u64 + 5;
    code.push(opcode);
    code.extend(i32::try_from(at(to).cast_signed() - next.cast_signed()).unwrap().to_le_bytes());
}

/// `mov OFFSET(security_hook_heads)(%rip), %rax; ret`.
fn ask(own: &str, offset: u64) -> Vec<u8> {
    let mut code = vec![0x48, 0x8b, 0x05];
    let next = at(own) + 7;
    code.extend(i32::try_from((DATA + offset).cast_signed() - next.cast_signed()).unwrap().to_le_bytes());
    code.push(0xc3);
    code
}

fn code(name: &str) -> Vec<u8> {
    let mut code = Vec::new();
    match name {
        "__x64_sys_open" => {
            branch(&mut code, name, 0xe8, "logs");
            branch(&mut code, name, 0xe8, "vfs_open");
        }
        "vfs_open" => {
            // mov 8(%rdi), %rax; mov (%rax), %rax; call *%rax: file->op->open(file)
            code.extend([0x48, 0x8b, 0x47, 0x08, 0x48, 0x8b, 0x00, 0xff, 0xd0]);
            branch(&mut code, name, 0xe9, "security_file_open");
        }
        "ext_open" => branch(&mut code, name, 0xe8, "security_inode_permission"),
        "security_file_open" => return ask(name, 0),
        "security_inode_permission" => return ask(name, 8),
        // call *%rbx, whose target is unknown.
        "logs" => code.extend([0xff, 0xd3]),
        _ => {}
    }
    code.push(0xc3);
    code
}

fn text() -> Vec<u8> {
    let mut text = Vec::new();
    for name in NAMES {
        let mut code = code(name);
        code.resize(usize::try_from(SLOT).unwrap(), 0xcc);
        text.extend(code);
    }
    text.resize(text.len() + usize::try_from(FILLERS * SLOT).unwrap(), 0xc3);
    text
}

/// All symbols, sorted: address, letter and name.
pub(crate) fn symbols() -> Vec<(u64, String)> {
    let functions = NAMES.iter().map(|name| (at(name), format!("T{name}")));
    let fillers = (0..FILLERS).map(|number| (TEXT + SLOT * (NAMES.len() as u64 + number), format!("tfiller_{number}")));
    let data = [(RODATA, "rext_ops"), (RODATA + 16, "rafter"), (DATA, "Dsecurity_hook_heads"), (DATA + 64, "Dend")];
    functions.chain(fillers).chain(data.map(|(address, name)| (address, name.to_string()))).collect()
}

/// The symbols as a System.map.
pub(crate) fn map() -> String {
    symbols().iter().map(|(address, name)| format!("{address:016x} {} {}\n", &name[..1], &name[1..])).collect()
}

fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

/// What a kernel tells of its symbols, by kallsyms.
pub(crate) fn kallsyms(layout: Layout) -> Vec<u8> {
    let (symbols, start) = (symbols(), KALLSYMS);
    let alignment = if layout == Layout::OwnPlaces { 4 } else { 8 };
    let count = u32::try_from(symbols.len()).unwrap();
    let absolute = matches!(layout, Layout::OffsetsFirst | Layout::WithOrder | Layout::OffsetsLast);
    let offsets = |bytes: &mut Vec<u8>| {
        for (address, _) in &symbols {
            let offset = match layout {
                Layout::OwnPlaces => address.wrapping_sub(start + bytes.len() as u64),
                _ if absolute => (TEXT - 1).wrapping_sub(*address),
                _ => address - TEXT,
            };
            bytes.extend((offset & 0xffff_ffff).to_le_bytes()[..4].iter());
        }
        align(bytes, 8);
        if layout != Layout::OwnPlaces {
            bytes.extend(TEXT.to_le_bytes());
        }
    };
    let mut bytes = Vec::new();
    let first = matches!(layout, Layout::OffsetsFirst | Layout::WithOrder);
    if first {
        offsets(&mut bytes);
    }
    bytes.extend(count.to_le_bytes());
    align(&mut bytes, alignment);
    let names = bytes.len();
    let mut markers = Vec::new();
    for (index, (_, name)) in symbols.iter().enumerate() {
        if index % 256 == 0 {
            markers.extend(u32::try_from(bytes.len() - names).unwrap().to_le_bytes());
        }
        bytes.push(u8::try_from(name.len()).unwrap());
        bytes.extend(name.bytes());
    }
    align(&mut bytes, alignment);
    bytes.extend(markers);
    align(&mut bytes, alignment);
    if layout == Layout::WithOrder {
        // Three bytes per symbol, the last not zero.
        bytes.extend((0..count).flat_map(|_| [0, 1, 2]));
    }
    tokens(&mut bytes, alignment);
    if !first {
        offsets(&mut bytes);
    }
    bytes
}

/// A token for each byte that names contain.
fn tokens(bytes: &mut Vec<u8>, alignment: usize) {
    let start = bytes.len();
    let mut index = Vec::new();
    for code in 0..=255u8 {
        index.extend(u16::try_from(bytes.len() - start).unwrap().to_le_bytes());
        bytes.extend(Some(code).filter(|code| code.is_ascii_graphic()));
        bytes.push(0);
    }
    align(bytes, alignment);
    bytes.extend(index);
    align(bytes, alignment);
}

/// The types: `struct file { long; struct ops *op; }`, `struct ops { open; release; }`, and the union of hooks.
pub(crate) fn btf() -> Vec<u8> {
    let mut strings = vec![0];
    let mut types: Vec<u8> = Vec::new();
    let mut name = |text: &str| {
        let at = strings.len();
        strings.extend(text.bytes().chain([0]));
        u32::try_from(at).unwrap()
    };
    let mut put = |words: &[u32]| types.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    let kind = |kind: u32, count: u32| kind << 24 | count;
    put(&[name("long"), kind(1, 0), 8, 64]); // 1
    put(&[name("file"), kind(4, 2), 16, name("count"), 1, 0, name("op"), 4, 64]); // 2
    put(&[name("ops"), kind(4, 2), 16, name("open"), 6, 0, name("release"), 9, 64]); // 3
    put(&[0, kind(2, 0), 3]); // 4: struct ops *
    put(&[0, kind(13, 1), 1, name("file"), 7]); // 5: long (struct file *)
    put(&[0, kind(2, 0), 5]); // 6
    put(&[0, kind(2, 0), 2]); // 7: struct file *
    put(&[0, kind(13, 1), 1, name("number"), 1]); // 8: long (long)
    put(&[0, kind(2, 0), 8]); // 9
    for function in ["vfs_open", "ext_open"] {
        put(&[name(function), kind(12, 0), 5]); // 10, 11
    }
    put(&[name("ext_release"), kind(12, 0), 8]); // 12
    put(&[name("security_hook_heads"), kind(4, 2), 16, name("file_open"), 1, 0, name("inode_permission"), 1, 64]);
    put(&[name("security_list_options"), kind(5, 3), 8]);
    put(&[name("file_open"), 6, 0, name("inode_permission"), 6, 0, name("inode_unlink"), 6, 0]);
    let (types_length, strings_length) = (u32::try_from(types.len()).unwrap(), u32::try_from(strings.len()).unwrap());
    let mut bytes = vec![0x9f, 0xeb, 1, 0];
    bytes.extend([24, 0, types_length, types_length, strings_length].iter().flat_map(|word: &u32| word.to_le_bytes()));
    bytes.extend(types);
    bytes.extend(strings);
    bytes
}

/// The ELF file.
pub(crate) fn elf(layout: Layout) -> Vec<u8> {
    elf_of(btf(), if layout == Layout::None { Vec::new() } else { kallsyms(layout) })
}

/// The ELF file of these types and symbols.
pub(crate) fn elf_of(btf: Vec<u8>, kallsyms: Vec<u8>) -> Vec<u8> {
    let mut rodata = Vec::new();
    rodata.extend(at("ext_open").to_le_bytes());
    rodata.extend(at("ext_release").to_le_bytes());
    rodata.resize(usize::try_from(KALLSYMS - RODATA).unwrap(), 0);
    rodata.extend(kallsyms);
    sections(&[
        (".text", 6, TEXT, text()),
        (".rodata", 2, RODATA, rodata),
        (".BTF", 2, 0x1000, btf),
        (".data", 3, DATA, vec![0; 128]),
    ])
}

fn sections(sections: &[(&str, u64, u64, Vec<u8>)]) -> Vec<u8> {
    let mut names = vec![0];
    let mut file = vec![0; 64];
    let mut headers = vec![0; 64];
    let mut header = |name: usize, kind: u32, flags: u64, address: u64, offset: usize, size: usize| {
        headers.extend(u32::try_from(name).unwrap().to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for word in [flags, address, offset as u64, size as u64, 0, 1, 0] {
            headers.extend(word.to_le_bytes());
        }
    };
    for (name, flags, address, bytes) in sections {
        align(&mut file, 16);
        header(names.len(), 1, *flags, *address, file.len(), bytes.len());
        names.extend(name.bytes().chain([0]));
        file.extend(bytes);
    }
    let own = names.len();
    names.extend(b".shstrtab\0");
    header(own, 3, 0, 0, file.len(), names.len());
    file.extend(names);
    align(&mut file, 8);
    let start = file.len() as u64;
    file.extend(headers);
    let count = u16::try_from(sections.len() + 2).unwrap();
    file[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0");
    file[20] = 1;
    file[40..48].copy_from_slice(&start.to_le_bytes());
    for (place, word) in [(52, 64), (54, 56), (58, 64), (60, count), (62, count - 1)] {
        file[place..place + 2].copy_from_slice(&u16::to_le_bytes(word));
    }
    file
}

/// A bzImage with a payload, according to the boot protocol.
pub(crate) fn bzimage(payload: &[u8]) -> Vec<u8> {
    let mut file = vec![0; 1024];
    file[0x1f1] = 1;
    file[0x202..0x206].copy_from_slice(b"HdrS");
    file[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
    file[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
    file.extend(payload);
    file
}

/// Its graph.
pub(crate) fn graph(layout: Layout) -> Result<Graph, Error> {
    let image = Image::parse(elf(layout))?;
    Graph::of(&image, &Symbols::of(&image, None)?)
}
