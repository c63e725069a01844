//! The guest's root file system: what is put in, and the archive made of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};

use crate::{Error, agent, cpio, error::Context};

/// This very program, even when its file has been replaced since it was started.
pub const RUNNING: &str = "/proc/self/exe";

/// Folders that mount points and programs expect.
const FOLDERS: [&str; 12] =
    ["bin", "dev", "etc", "lib", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "usr/sbin"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    File { mode: u32, content: Vec<u8> },
    Symlink(String),
}

impl Entry {
    fn digest(&self) -> String {
        match self {
            Self::File { mode, content } => format!("{mode:o} {}", hex(&Sha256::digest(content))),
            Self::Symlink(target) => format!("-> {target}"),
        }
    }
}

/// A root file system in the making: paths in the guest and what stands there.
#[derive(Debug, Clone, Default)]
pub struct Image {
    entries: BTreeMap<String, Entry>,
    modules: Vec<String>,
}

impl Image {
    /// The agent (this very program) as init, and busybox with its applets, if the host has it.
    pub fn with_agent() -> Result<Self, Error> {
        let mut image = Self::default();
        image.host_file(Path::new(RUNNING), agent::PROGRAM)?;
        image.symlink("/init", agent::PROGRAM);
        image.content(
            "/etc/passwd",
            0o644,
            b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        );
        image.content("/etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n");
        if let Some(busybox) = on_path("busybox") {
            image.busybox(&busybox)?;
        }
        Ok(image)
    }

    /// Adds a file with its content.
    pub fn content(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entries.insert(normal(path), Entry::File { mode, content: content.to_vec() });
    }

    /// Adds a symbolic link.
    pub fn symlink(&mut self, path: &str, target: &str) {
        self.entries.insert(normal(path), Entry::Symlink(target.into()));
    }

    /// Adds a file of the host under a path in the guest.
    pub fn host_file(&mut self, from: &Path, to: &str) -> Result<(), Error> {
        let content = fs::read(from).context(format!("read {}", from.display()))?;
        let mode = fs::metadata(from).context(format!("read {}", from.display()))?.permissions().mode();
        self.content(to, mode, &content);
        Ok(())
    }

    /// The image with what another has, too.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self.modules.extend(other.modules);
        self
    }

    /// All of it to be put on the guest's disk, under the same paths there.
    #[must_use]
    pub fn on_disk(self) -> Self {
        let entries = self.entries.into_iter().map(|(path, entry)| (format!("{}{path}", agent::FILES), entry));
        Self { entries: entries.collect(), modules: self.modules }
    }

    /// A file of the host that is put on the guest's disk, under a path there.
    pub fn disk_file(&mut self, from: &Path, to: &str) -> Result<(), Error> {
        self.host_file(from, &format!("{}/{to}", agent::FILES))
    }

    /// Adds a program of the host, with the shared libraries and the interpreter that it needs, each under its own
    /// path.
    ///
    /// `libraries` are folders to look in before the system's, for programs of packages that are unpacked, not
    /// installed; what is found there is put under `/lib/x86_64-linux-gnu`.
    pub fn program(&mut self, from: &Path, to: &str, libraries: &[PathBuf]) -> Result<(), Error> {
        self.host_file(from, to)?;
        if let Some(interpreter) = script_interpreter(&fs::read(from).context(format!("read {}", from.display()))?) {
            let found = PathBuf::from(&interpreter);
            return if self.entries.contains_key(&interpreter) {
                Ok(())
            } else {
                self.program(&found, &interpreter, &[])
            };
        }
        for library in shared_libraries(from, libraries)? {
            let own = libraries.iter().any(|folder| library.starts_with(folder));
            let name = library.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let place =
                if own { format!("/lib/x86_64-linux-gnu/{name}") } else { library.to_string_lossy().into_owned() };
            self.host_file(&library, &place)?;
        }
        Ok(())
    }

    /// Adds kernel modules, which the agent loads in this order.
    pub fn kernel_modules(&mut self, modules: Vec<(String, Vec<u8>)>) {
        for (name, content) in modules {
            let path = format!("/lib/modules/{name}.ko");
            if self.holds(&path) {
                continue;
            }
            self.content(&path, 0o644, &content);
            self.modules.push(path);
        }
    }

    /// Paths of the modules to load.
    pub(crate) fn module_paths(&self) -> &[String] {
        &self.modules
    }

    /// Whether the image has an entry at `path`.
    #[must_use]
    pub fn holds(&self, path: &str) -> bool {
        self.entries.contains_key(&normal(path))
    }

    /// The digest of the entry at each path.
    pub(crate) fn digests(&self) -> BTreeMap<String, String> {
        self.entries.iter().map(|(path, entry)| (path.clone(), entry.digest())).collect()
    }

    /// The entries of this image that a root file system with files of these digests lacks.
    pub(crate) fn beyond(&self, known: &BTreeMap<String, String>) -> Self {
        let lacking = self.entries.iter().filter(|(path, entry)| known.get(*path) != Some(&entry.digest()));
        Self { entries: lacking.map(|(path, entry)| (path.clone(), entry.clone())).collect(), modules: Vec::new() }
    }

    /// Writes the archive of files and links only, for a root file system that has booted.
    pub(crate) fn write_entries(&self, out: impl Write) -> std::io::Result<()> {
        let mut archive = cpio::Writer::new(BufWriter::new(out));
        self.entries(&mut archive)?;
        archive.finish()?.flush()
    }

    /// Writes the archive, with all parent folders.
    pub(crate) fn write(&self, out: impl Write) -> std::io::Result<()> {
        let mut archive = cpio::Writer::new(BufWriter::new(out));
        let mut folders: BTreeSet<String> = BTreeSet::new();
        for path in FOLDERS.iter().map(|f| format!("/{f}/")).chain(self.entries.keys().cloned()) {
            folders.extend(path.match_indices('/').skip(1).map(|(at, _)| path[..at].to_string()));
        }
        for folder in &folders {
            archive.directory(folder)?;
        }
        // The kernel opens /dev/console for init before anything is mounted.
        archive.device("/dev/console", 0o600, 5, 1)?;
        self.entries(&mut archive)?;
        archive.finish()?.flush()
    }

    fn entries(&self, archive: &mut cpio::Writer<impl Write>) -> std::io::Result<()> {
        for (path, entry) in &self.entries {
            match entry {
                Entry::File { mode, content } => archive.file(path, *mode, content)?,
                Entry::Symlink(target) => archive.symlink(path, target)?,
            }
        }
        Ok(())
    }

    fn busybox(&mut self, busybox: &Path) -> Result<(), Error> {
        self.program(busybox, "/bin/busybox", &[])?;
        let output = Command::new(busybox).arg("--list").output().context("run busybox --list")?;
        for applet in String::from_utf8_lossy(&output.stdout).lines().filter(|a| *a != "busybox") {
            self.symlink(&format!("/bin/{applet}"), "busybox");
        }
        Ok(())
    }
}

/// A digest of this very program.
pub(crate) fn program_digest() -> Result<String, Error> {
    let content = fs::read(RUNNING).context(format!("read {RUNNING}"))?;
    Ok(hex(&Sha256::digest(content)))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Makes a path absolute, without doubled or trailing slashes.
fn normal(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    format!("/{}", parts.join("/"))
}

/// Looks a program up as a shell would.
#[must_use]
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // A user's PATH may lack the folders of the administrator's programs.
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0))
}

/// The program that a script names after `#!`.
fn script_interpreter(content: &[u8]) -> Option<String> {
    let line = content.strip_prefix(b"#!")?.split(|&b| b == b'\n').next()?;
    String::from_utf8_lossy(line).split_whitespace().next().map(Into::into)
}

/// The libraries that the dynamic loader would map for `program`. The loader lists them itself, as for glibc's ldd.
fn shared_libraries(program: &Path, libraries: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let search = std::env::join_paths(libraries).unwrap_or_default();
    let output = Command::new("ldd")
        .arg(program)
        .env("LD_LIBRARY_PATH", search)
        .env("LC_ALL", "C")
        .output()
        .context(format!("ask ldd for the libraries of {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    parse_ldd(&text).map_err(|missing| Error::NotInGuest {
        path: program.into(),
        reason: format!("its library {missing} is not on this machine"),
    })
}

/// Reads lines `NAME => PATH (ADDRESS)`, `PATH (ADDRESS)` and `NAME => not found`. A static program has none.
fn parse_ldd(text: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.contains("=> not found") {
            return Err(line.split_whitespace().next().unwrap_or_default().into());
        }
        let path = line.split("=> ").last().unwrap_or_default().split(" (").next().unwrap_or_default();
        if path.starts_with('/') {
            found.push(PathBuf::from(path));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_loaders_answer() {
        let text = "\tlinux-vdso.so.1 (0x00007ffe)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(parse_ldd(text).unwrap(), expected);
        assert_eq!(parse_ldd("\tstatically linked\n").unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn refuses_a_program_whose_library_is_missing() {
        assert_eq!(parse_ldd("\tlibx.so.1 => not found\n"), Err("libx.so.1".to_string()));
    }

    #[test]
    fn puts_a_scripts_interpreter_beside_it() {
        assert_eq!(script_interpreter(b"#! /bin/sh -e\nexit").as_deref(), Some("/bin/sh"));
        assert_eq!(script_interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn sends_what_differs_in_content_mode_or_target() {
        let mut before = Image::default();
        before.content("/same", 0o644, b"x");
        before.content("/content", 0o644, b"x");
        before.content("/mode", 0o644, b"x");
        before.symlink("/link", "x");
        let mut after = before.clone();
        after.content("/content", 0o644, b"y");
        after.content("/mode", 0o755, b"x");
        after.symlink("/link", "y");
        after.content("/new", 0o644, b"x");
        let sent = after.beyond(&before.digests());
        assert_eq!(sent.entries.keys().collect::<Vec<_>>(), ["/content", "/link", "/mode", "/new"]);
    }

    #[test]
    fn writes_parents_before_their_files() {
        let mut image = Image::default();
        image.content("//a//b/c", 0o600, b"x");
        let mut bytes = Vec::new();
        image.write(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let at = |needle: &str| text.find(needle).unwrap_or_else(|| panic!("{needle} is missing"));
        assert!(at("a\0") < at("a/b\0") && at("a/b\0") < at("a/b/c\0"));
        assert!(image.holds("/a/b/c"));
    }
}
