//! Kernel modules for the guest: found by name, with their dependencies, unpacked.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use lzma_rust2::XzReader;

use crate::{Error, error::Context};

/// The modules `names` and all their dependencies, in loading order, as (name, content).
///
/// A name without a file is left out, because it may be built in. If it is missing, using it fails.
pub fn with_dependencies(folder: &Path, names: &[&str]) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut files = Vec::new();
    collect(&folder.join("kernel"), &mut files)?;
    files.sort();
    let mut loaded = Vec::new();
    for name in names {
        add(&files, name, &mut loaded)?;
    }
    Ok(loaded)
}

fn add(files: &[PathBuf], name: &str, loaded: &mut Vec<(String, Vec<u8>)>) -> Result<(), Error> {
    if loaded.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    let Some(path) = files.iter().find(|path| module_name(path).as_deref() == Some(name)) else {
        return Ok(());
    };
    let content = unpacked(path)?;
    for needed in dependencies(&content) {
        add(files, &needed, loaded)?;
    }
    loaded.push((name.to_string(), content));
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let what = || format!("list the kernel modules in {}", folder.display());
    for entry in fs::read_dir(folder).context(what())? {
        let path = entry.context(what())?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// `nf-tables.ko.xz` is module `nf_tables`.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_suffix(".xz").unwrap_or(file).strip_suffix(".ko")?;
    Some(stem.replace('-', "_"))
}

fn unpacked(path: &Path) -> Result<Vec<u8>, Error> {
    let bytes = fs::read(path).context(format!("read {}", path.display()))?;
    if path.extension().is_none_or(|e| e != "xz") {
        return Ok(bytes);
    }
    let mut content = Vec::new();
    XzReader::new(bytes.as_slice(), true)
        .read_to_end(&mut content)
        .map_err(|e| Error::NotInGuest { path: path.into(), reason: format!("cannot decompress it: {e}") })?;
    Ok(content)
}

/// The comma-separated `depends=` entry of the `.modinfo` section.
fn dependencies(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|w| w == KEY) else {
        return Vec::new();
    };
    let value = &module[at + KEY.len()..];
    let end = value.iter().position(|&b| b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end])
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('-', "_"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `\x7fELF\0depends=base\0`, packed by liblzma with a CRC32, as the kernel's modules are.
    const PACKED: &[u8] = b"\xfd\x37\x7a\x58\x5a\x00\x00\x01\x69\x22\xde\x36\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f\xe5\xa3\x01\x00\x11\x7f\
        \x45\x4c\x46\x00\x64\x65\x70\x65\x6e\x64\x73\x3d\x62\x61\x73\x65\x00\x00\x00\x00\xad\x1d\xdf\xac\x00\x01\x26\x12\
        \x47\x47\xe1\x10\x90\x42\x99\x0d\x01\x00\x00\x00\x00\x01\x59\x5a";

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let kernel = dir.path().join("kernel/drivers/net");
        fs::create_dir_all(&kernel).unwrap();
        fs::write(kernel.join("top.ko"), b"\x7fELF\0license=GPL\0depends=mid-dle,base\0x").unwrap();
        fs::write(kernel.join("mid-dle.ko.xz"), PACKED).unwrap();
        fs::write(kernel.join("base.ko"), b"\x7fELF\0depends=\0").unwrap();
        dir
    }

    fn names(folder: &Path, wanted: &[&str]) -> Vec<String> {
        with_dependencies(folder, wanted).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn loads_what_a_module_needs_before_it_and_once() {
        let dir = tree();
        assert_eq!(names(dir.path(), &["top", "base"]), ["base", "mid_dle", "top"]);
    }

    #[test]
    fn unpacks_compressed_modules() {
        let dir = tree();
        let modules = with_dependencies(dir.path(), &["mid_dle"]).unwrap();
        assert!(modules[1].1.starts_with(b"\x7fELF"));
    }

    #[test]
    fn leaves_out_what_has_no_file() {
        let dir = tree();
        assert_eq!(names(dir.path(), &["ext4"]), Vec::<String>::new());
    }
}
