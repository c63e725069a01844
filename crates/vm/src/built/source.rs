//! The kernel's source: Debian's package, unpacked, with our security module in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tollgate_host::{Cache, Error as HostError, Package, Packages, process};

use crate::{Error, error::Context};

/// The record of the source's packages, beside it.
const RECORD: &str = "packages.json";

/// Our module's folder in `security/`.
const MODULE: &str = "tollgate_latency";
const MODULE_FILES: [(&str, &str); 3] = [
    ("Kconfig", include_str!("../../kernel/tollgate_latency/Kconfig")),
    ("Makefile", include_str!("../../kernel/tollgate_latency/Makefile")),
    ("tollgate_latency.c", include_str!("../../kernel/tollgate_latency/tollgate_latency.c")),
];

/// Additions to the kernel's own files for the module: the line, and the line before which it stands.
const MENTIONS: [(&str, &str, &str); 2] = [
    ("security/Kconfig", "source \"security/tollgate_latency/Kconfig\"", "source \"security/yama/Kconfig\""),
    (
        "security/Makefile",
        "obj-$(CONFIG_SECURITY_TOLLGATE_LATENCY) += tollgate_latency/",
        "obj-$(CONFIG_SECURITY_YAMA)\t\t+= yama/",
    ),
];

/// A source that can be built.
#[derive(Debug)]
pub(super) struct Source {
    /// The top folder of the source.
    pub(super) folder: PathBuf,
    /// The packages of the source.
    pub(super) packages: Vec<Package>,
}

/// The folder of a package's source: `sources/linux-source-6.1`.
pub(super) fn place(cache: &Cache, package: &str) -> PathBuf {
    cache.path("sources").join(package)
}

/// The files that this program adds to the source.
pub(super) fn added<'a>() -> impl Iterator<Item = &'a str> {
    let files = MODULE_FILES.into_iter().flat_map(|(name, content)| [name, content]);
    files.chain(MENTIONS.into_iter().flat_map(|(file, line, before)| [file, line, before]))
}

/// Fetches and unpacks the source if the cache does not have it, and adds this program's module.
pub(super) fn ready(cache: &Cache, package: &str) -> Result<Source, Error> {
    let folder = cache.folder(&format!("sources/{package}"), |fresh| unpack(cache, package, fresh))?;
    let record = folder.join(RECORD);
    let text = fs::read_to_string(&record).context(format!("read {}", record.display()))?;
    let packages = serde_json::from_str(&text).map_err(std::io::Error::from).context("read the record")?;
    add_module(&folder)?;
    Ok(Source { folder, packages })
}

/// The package contains `usr/src/PACKAGE.tar.xz`, and that contains one folder.
fn unpack(cache: &Cache, package: &str, into: &Path) -> Result<(), Error> {
    let fetched = tempfile::tempdir_in(cache.root()).context("make a folder for the source in the cache")?;
    let packages = Packages::new(cache).unpack(&[package], fetched.path())?;
    let archive = fetched.path().join(format!("usr/src/{package}.tar.xz"));
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "-xJf"]).arg(&archive).arg("-C").arg(into);
    let output = process::output(&mut tar, cache.limits())?;
    if !output.status.success() {
        let detail = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(HostError::Apt { program: "tar".into(), detail }.into());
    }
    let record = serde_json::to_vec_pretty(&packages).map_err(std::io::Error::from).context("write the record")?;
    fs::write(into.join(RECORD), record).context(format!("write {RECORD}"))
}

/// Writes only files that differ, because make compiles everything that is newer than its objects.
fn add_module(source: &Path) -> Result<(), Error> {
    let folder = source.join("security").join(MODULE);
    fs::create_dir_all(&folder).context(format!("make {}", folder.display()))?;
    for (name, content) in MODULE_FILES {
        write_if_other(&folder.join(name), content)?;
    }
    for (file, line, before) in MENTIONS {
        let path = source.join(file);
        let text = fs::read_to_string(&path).context(format!("read {}", path.display()))?;
        let wrong =
            || std::io::Error::other(format!("no line {before:?}: this source is of a kernel that is not known"));
        let mentioned = mention(&text, line, before).ok_or_else(wrong).context(format!("change {}", path.display()))?;
        write_if_other(&path, &mentioned)?;
    }
    Ok(())
}

fn write_if_other(path: &Path, content: &str) -> Result<(), Error> {
    if fs::read_to_string(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    fs::write(path, content).context(format!("write {}", path.display()))
}

/// The text with `line` before `before`, once; `None` if `before` does not occur.
fn mention(text: &str, line: &str, before: &str) -> Option<String> {
    if text.lines().any(|other| other == line) {
        return Some(text.to_owned());
    }
    let at = text.lines().position(|other| other == before)?;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(at, line);
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_the_module_once_before_a_line_that_is_there() {
        let once = mention("a\nb\n", "new", "b").unwrap();
        assert_eq!(once, "a\nnew\nb\n");
        assert_eq!(mention(&once, "new", "b").as_deref(), Some(once.as_str()));
        assert_eq!(mention("a\n", "new", "b"), None);
    }

    #[test]
    fn leaves_files_alone_that_are_as_they_should_be() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("security")).unwrap();
        for (file, _, before) in MENTIONS {
            fs::write(dir.path().join(file), format!("{before}\n")).unwrap();
        }
        add_module(dir.path()).unwrap();
        let times = || {
            let files = MODULE_FILES.map(|(name, _)| format!("security/{MODULE}/{name}")).into_iter();
            let files = files.chain(MENTIONS.map(|(file, ..)| file.to_owned()));
            files.map(|file| fs::metadata(dir.path().join(file)).unwrap().modified().unwrap()).collect::<Vec<_>>()
        };
        let before = times();
        add_module(dir.path()).unwrap();
        assert_eq!(times(), before);
    }

    #[test]
    fn tells_a_source_that_it_does_not_know() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("security")).unwrap();
        fs::write(dir.path().join("security/Kconfig"), "config SECURITY\n").unwrap();
        let error = add_module(dir.path()).unwrap_err().to_string();
        assert!(error.contains("security/Kconfig") && error.contains("yama"), "{error}");
    }
}
