//! Finds the ELF file in a kernel image: the boot protocol's payload, and its compression.

use std::io::Read;

use lzma_rust2::{LzmaReader, XzReader};
use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_with_limit};
use ruzstd::decoding::StreamingDecoder;

use crate::Error;

/// The largest unpacked kernel, in bytes; Debian's have 62 MB, one with everything built in some 400 MB.
const MAX_UNPACKED_SIZE: usize = 1 << 30;
/// The largest window of zstd; the kernel is packed with `--ultra -22`, which takes 128 MiB.
const MAX_ZSTD_WINDOW: u64 = 256 << 20;
/// The most memory for unpacking xz, in KiB; the kernel's own dictionaries are 32 and 128 MiB.
const XZ_MEMORY: u32 = 512 << 10;
/// The unpacked size of a block of a legacy lz4 stream, as `lz4 -l` writes it.
const LZ4_BLOCK: usize = 8 << 20;

// The boot protocol's header (Documentation/arch/x86/boot.rst).
const SETUP_SECTS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const VERSION: usize = 0x206;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
/// The version of the protocol since which the header says where the payload is.
const WITH_PAYLOAD: u16 = 0x208;

/// The compression of a payload (scripts/Makefile.lib), by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Gzip,
    Xz,
    Lzma,
    Zstd,
    Lz4,
    Unread(&'static str),
}

const PACKINGS: [(&[u8], Packing); 8] = [
    (b"\x1f\x8b\x08", Packing::Gzip),
    (b"\xfd7zXZ\0", Packing::Xz),
    (b"\x5d\0\0", Packing::Lzma),
    (b"\x28\xb5\x2f\xfd", Packing::Zstd),
    (b"\x02\x21\x4c\x18", Packing::Lz4),
    (b"BZh", Packing::Unread("bzip2")),
    (b"\x89LZO", Packing::Unread("lzo")),
    (b"\x04\x22\x4d\x18", Packing::Unread("lz4's frame format")),
];

/// The ELF file in a kernel image.
pub(super) fn unpack(file: Vec<u8>) -> Result<Vec<u8>, Error> {
    if is_elf(&file) {
        return Ok(file);
    }
    if file.get(MAGIC..MAGIC + 4) == Some(b"HdrS") {
        let payload = payload(&file)?;
        if is_elf(payload) {
            return Ok(payload.to_vec());
        }
        let packing = packing(payload).ok_or_else(|| Error::Compression {
            found: format!("an unknown method (its payload starts with {})", first_bytes(payload)),
        })?;
        let unpacked = decompress(packing, payload)?;
        // The build appends the kernel's size (scripts/Makefile.lib, size_append); gzip does so itself.
        let size = payload.last_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        return if size == Some(unpacked.len()) {
            Ok(unpacked)
        } else {
            Err(Error::Damaged { reason: format!("its payload gave {} bytes and announces {size:?}", unpacked.len()) })
        };
    }
    match packing(&file) {
        Some(packing) => decompress(packing, &file),
        None => Err(Error::NotAKernel { reason: format!("it starts with {}", first_bytes(&file)) }),
    }
}

fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

fn first_bytes(bytes: &[u8]) -> String {
    match bytes {
        [] => "nothing: it is empty".into(),
        _ => bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
    }
}

fn packing(bytes: &[u8]) -> Option<Packing> {
    PACKINGS.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, packing)| *packing)
}

/// The payload of a bzImage.
fn payload(file: &[u8]) -> Result<&[u8], Error> {
    let truncated = |what: &str| Error::Damaged { reason: format!("the bzImage ends before {what}") };
    let version = file.get(VERSION..VERSION + 2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    if version.ok_or_else(|| truncated("its header's end"))? < WITH_PAYLOAD {
        return Err(Error::NotAKernel { reason: "its boot protocol is older than 2.08 (Linux 2.6.26)".into() });
    }
    let number = |at: usize| file.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
    let (Some(offset), Some(length)) = (number(PAYLOAD_OFFSET), number(PAYLOAD_LENGTH)) else {
        return Err(truncated("its header's end"));
    };
    // 0 stands for 4, according to the protocol.
    let sectors = match file[SETUP_SECTS] {
        0 => 4,
        count => usize::from(count),
    };
    let start = (sectors + 1) * 512 + offset;
    file.get(start..start + length).ok_or_else(|| truncated("its payload does"))
}

fn decompress(packing: Packing, packed: &[u8]) -> Result<Vec<u8>, Error> {
    match packing {
        Packing::Gzip => gzip(packed),
        Packing::Xz => all_of("xz", XzReader::new_mem_limit(packed, false, XZ_MEMORY)),
        Packing::Lzma => {
            let reader = LzmaReader::new_mem_limit(packed, XZ_MEMORY, None).map_err(|cause| damaged("lzma", cause))?;
            all_of("lzma", reader)
        }
        Packing::Zstd => {
            let decoder = StreamingDecoder::new_with_max_window_size(packed, MAX_ZSTD_WINDOW);
            all_of("zstd", decoder.map_err(|cause| damaged("zstd", cause))?)
        }
        Packing::Lz4 => lz4(packed),
        Packing::Unread(name) => Err(Error::Compression { found: name.into() }),
    }
}

fn damaged(method: &str, cause: impl std::fmt::Display) -> Error {
    Error::Damaged { reason: format!("its {method} stream cannot be unpacked ({cause})") }
}

fn all_of(method: &str, reader: impl Read) -> Result<Vec<u8>, Error> {
    let mut unpacked = Vec::new();
    let read =
        reader.take(MAX_UNPACKED_SIZE as u64 + 1).read_to_end(&mut unpacked).map_err(|cause| damaged(method, cause))?;
    if read > MAX_UNPACKED_SIZE { Err(too_large(method)) } else { Ok(unpacked) }
}

fn too_large(method: &str) -> Error {
    damaged(method, "it gives more than a kernel can have")
}

/// RFC 1952: a header with the fields of its flags, then a deflate stream.
fn gzip(packed: &[u8]) -> Result<Vec<u8>, Error> {
    let stream = gzip_body(packed).ok_or_else(|| damaged("gzip", "its header is cut short"))?;
    decompress_to_vec_with_limit(stream, MAX_UNPACKED_SIZE).map_err(|cause| match cause.status {
        TINFLStatus::HasMoreOutput => too_large("gzip"),
        status => damaged("gzip", format!("{status:?}")),
    })
}

fn gzip_body(packed: &[u8]) -> Option<&[u8]> {
    const CRC: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    let flags = *packed.get(3)?;
    let mut rest = packed.get(10..)?;
    if flags & EXTRA != 0 {
        let length = u16::from_le_bytes(*rest.first_chunk()?);
        rest = rest.get(2 + usize::from(length)..)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            rest = &rest[rest.iter().position(|byte| *byte == 0)? + 1..];
        }
    }
    if flags & CRC != 0 { rest.get(2..) } else { Some(rest) }
}

/// lz4's legacy format: after the magic number blocks with their lengths, until the payload's trailing size.
fn lz4(packed: &[u8]) -> Result<Vec<u8>, Error> {
    let (mut unpacked, mut buffer) = (Vec::new(), vec![0; LZ4_BLOCK]);
    let mut rest = &packed[4..];
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        // The last four bytes are the kernel's size (scripts/Makefile.lib, size_append).
        if after.is_empty() {
            break;
        }
        let block = after.get(..length).ok_or_else(|| damaged("lz4", "a block is cut short"))?;
        let size = lz4_flex::block::decompress_into(block, &mut buffer).map_err(|cause| damaged("lz4", cause))?;
        if unpacked.len() + size > MAX_UNPACKED_SIZE {
            return Err(too_large("lz4"));
        }
        unpacked.extend_from_slice(&buffer[..size]);
        rest = &after[length..];
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::bzimage;

    /// The output of xz --x86 --lzma2, as the kernel's build calls it, for `calls`.
    const XZ: &str = "fd377a585a0000016922de360201040021010800d2b974cbe000d700125d003f9145846d86754d818835e9c464f9e000\
                      00000000dd0575a400012ad80100000070a15b643e300d8b020000000001595a";
    /// The output of lzma for the same.
    const LZMA: &str = "5d00008000ffffffffffffffff003f9145846d86754e72ed1ed397d47eb6b705fd0028a218269ffdd4b7c942bbd77549\
                        1f3798a21291350e49eca3ca0e16e76ba4e0691abf230e35e5a2953793208181ca83c8074643548f08009e23f2ff8cb4\
                        e4962ddaf4fff987a000";

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digits: Vec<u32> = hexadecimal.chars().filter_map(|c| c.to_digit(16)).collect();
        digits.chunks(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
    }

    /// Forty calls of one function, which the x86 filter makes equal.
    fn calls() -> Vec<u8> {
        let mut code = b"\x7fELF".to_vec();
        code.resize(16, 0x90);
        for _ in 0..40 {
            let next = i32::try_from(code.len()).unwrap() + 5;
            code.push(0xe8);
            code.extend((0x1000 - next).to_le_bytes());
        }
        code
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        // With a name, as gzip writes it.
        let mut packed = b"\x1f\x8b\x08\x08\0\0\0\0\x02\x03vmlinux\0".to_vec();
        packed.extend(miniz_oxide::deflate::compress_to_vec(text, 9));
        packed.extend([0; 4]);
        packed.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        packed
    }

    /// One frame with one block that is not compressed.
    fn zstd(text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len()).unwrap();
        let mut packed = b"\x28\xb5\x2f\xfd\x00\x88".to_vec();
        packed.extend(&(length << 3 | 1).to_le_bytes()[..3]);
        packed.extend(text);
        packed
    }

    /// One block that has only literals.
    fn lz4(text: &[u8]) -> Vec<u8> {
        let mut block = vec![0xf0];
        let mut more = text.len() - 15;
        while more >= 255 {
            block.push(255);
            more -= 255;
        }
        block.push(u8::try_from(more).unwrap());
        block.extend(text);
        let mut packed = b"\x02\x21\x4c\x18".to_vec();
        packed.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
        packed.extend(block);
        packed
    }

    fn with_size(mut packed: Vec<u8>, text: &[u8]) -> Vec<u8> {
        packed.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        packed
    }

    #[test]
    fn unpacks_what_kernels_are_packed_with() {
        let text = calls();
        let packed = [bytes(XZ), bytes(LZMA), zstd(&text), lz4(&text)].map(|packed| with_size(packed, &text));
        for payload in packed.into_iter().chain([gzip(&text), text.clone()]) {
            let unpacked = unpack(bzimage(&payload)).unwrap_or_else(|e| panic!("{:02x?}: {e}", &payload[..4]));
            assert_eq!(unpacked, text, "{:02x?}", &payload[..4]);
        }
        // A vmlinux that was compressed by hand.
        assert_eq!(unpack(gzip(&text)).unwrap(), text);
        assert_eq!(unpack(text.clone()).unwrap(), text);
    }

    #[test]
    fn names_what_it_does_not_unpack() {
        for (payload, name) in
            [(&b"BZh9xxxx"[..], "bzip2"), (b"\x89LZO\0xxx", "lzo"), (b"\xde\xad\xbe\xef", "de ad be ef")]
        {
            let error = unpack(bzimage(payload)).unwrap_err();
            assert!(matches!(error, Error::Compression { .. }) && error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn tells_a_kernel_that_is_cut_short_wherever_that_is() {
        let text = calls();
        let whole = bzimage(&with_size(lz4(&text), &text));
        for length in 0x206..whole.len() {
            let error = unpack(whole[..length].to_vec()).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{length}: {error}");
        }
    }

    #[test]
    fn refuses_a_payload_of_another_size_than_it_announces() {
        let text = calls();
        let mut payload = with_size(zstd(&text), &text);
        let last = payload.len() - 4;
        payload[last] ^= 1;
        assert!(matches!(unpack(bzimage(&payload)), Err(Error::Damaged { .. })));
    }

    #[test]
    fn refuses_what_is_no_kernel_and_says_what_it_is() {
        for (file, word) in [(&b""[..], "empty"), (b"#!/bin/sh\n", "23 21 2f 62")] {
            let error = unpack(file.to_vec()).unwrap_err();
            assert!(matches!(error, Error::NotAKernel { .. }) && error.to_string().contains(word), "{error}");
        }
    }
}
