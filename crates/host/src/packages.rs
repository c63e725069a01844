//! Fetches Debian packages without changing the system, by apt with directories of its own.
//!
//! Mirror, proxy and keys are those of the system. Only suites are added. apt verifies what it fetches.

mod system;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use crate::{Cache, Context, Error, process};

/// Suites whose kernels and packages can be requested, oldest first.
const SUITES: [&str; 5] = ["bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports"];
/// Those of them that have a security suite on the security mirror.
const SECURED: [&str; 3] = ["bullseye", "bookworm", "trixie"];
/// Debian's own keyring. It has the keys of all these suites, even if the system's sources name fewer.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The disk space for the lists of all suites, in MiB, including what reading them needs.
const LISTS_SIZE: u64 = 512;
/// The disk space for the largest set of packages: a kernel, packed and unpacked.
const PACKAGES_SIZE: u64 = 512;
/// Package lists older than this are read again, if there is a network.
const LISTS_MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// A package that was fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Name of the package.
    pub name: String,
    /// Version of the package.
    pub version: String,
    /// SHA-256 of the archive, as apt verified it.
    pub sha256: String,
}

/// The private apt.
#[derive(Debug)]
pub struct Packages<'c> {
    cache: &'c Cache,
}

impl<'c> Packages<'c> {
    /// Uses the lists in `cache`. Nothing is read or fetched yet.
    #[must_use]
    pub fn new(cache: &'c Cache) -> Self {
        Self { cache }
    }

    /// Reads the package lists if they are missing or old, or in any case if `force` is set.
    ///
    /// If the cache has lists and the mirror cannot be reached, the cached ones are used.
    pub fn update(&self, force: bool) -> Result<(), Error> {
        let stamp = self.home().join("updated");
        let fresh = fs::metadata(&stamp)
            .and_then(|meta| meta.modified())
            .is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age < LISTS_MAX_AGE));
        if fresh && !force {
            return Ok(());
        }
        self.cache.needs_room(LISTS_SIZE)?;
        let _lock = self.cache.lock("apt")?;
        self.write_configuration()?;
        let output = self.apt("apt-get", &["-q", "update", "-o", "APT::Update::Error-Mode=any"])?;
        if output.status.success() {
            return fs::write(&stamp, "").context(format!("write {}", stamp.display()));
        }
        if stamp.exists() && !force {
            return Ok(());
        }
        Err(self.why_not(&["the package lists"], &output.stderr))
    }

    /// The names of all packages for which `wanted` is true.
    pub fn names(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, Error> {
        self.update(false)?;
        let output = self.succeed("apt-cache", &["pkgnames"])?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter(|name| wanted(name)).map(Into::into).collect())
    }

    /// Fetches packages (`name`, `name=version` or `name/suite`) and unpacks them into `into`.
    pub fn unpack(&self, names: &[&str], into: &Path) -> Result<Vec<Package>, Error> {
        self.update(false)?;
        self.cache.needs_room(PACKAGES_SIZE)?;
        let folder = tempfile::tempdir_in(self.cache.root()).context("make a folder for packages in the cache")?;
        let mut arguments = vec!["-q", "download"];
        arguments.extend(names);
        let mut output = self.apt_in(folder.path(), "apt-get", &arguments)?;
        if !output.status.success() && !is_unreachable(&String::from_utf8_lossy(&output.stderr)) {
            // The lists may name a version that the mirror has replaced since.
            self.update(true)?;
            output = self.apt_in(folder.path(), "apt-get", &arguments)?;
        }
        if !output.status.success() {
            return Err(self.why_not(names, &output.stderr));
        }
        let mut archives: Vec<PathBuf> = fs::read_dir(folder.path())
            .context("list what was fetched")?
            .filter_map(|entry| entry.ok().map(|e| e.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "deb"))
            .collect();
        archives.sort();
        archives.iter().map(|archive| self.unpack_one(archive, into)).collect()
    }

    fn unpack_one(&self, archive: &Path, into: &Path) -> Result<Package, Error> {
        let path = archive.to_string_lossy();
        self.succeed("dpkg-deb", &["-x", &path, &into.to_string_lossy()])?;
        let fields = self.succeed("dpkg-deb", &["-f", &path, "Package", "Version"])?;
        let fields = String::from_utf8_lossy(&fields.stdout).into_owned();
        let field = |name: &str| {
            fields.lines().find_map(|line| line.strip_prefix(name)).map(|v| v.trim().to_string()).unwrap_or_default()
        };
        let sum = self.succeed("sha256sum", &[&path])?;
        let sha256 = String::from_utf8_lossy(&sum.stdout).split_whitespace().next().unwrap_or_default().to_string();
        Ok(Package { name: field("Package:"), version: field("Version:"), sha256 })
    }

    fn why_not(&self, names: &[&str], stderr: &[u8]) -> Error {
        let text = String::from_utf8_lossy(stderr);
        match missing(&text) {
            Some(name) => Error::NoPackage { name: name.into(), suites: SUITES.join(", ") },
            None if is_unreachable(&text) => Error::Offline {
                what: names.join(", "),
                detail: last_lines(stderr, 3),
                cache: self.cache.root().to_path_buf(),
            },
            None => Error::Apt { program: "apt-get".into(), detail: last_lines(stderr, 3) },
        }
    }

    fn home(&self) -> PathBuf {
        self.cache.path("apt")
    }

    /// Writes apt's own directories, and the sources: the system's mirror with more suites.
    fn write_configuration(&self) -> Result<(), Error> {
        let home = self.home();
        for folder in ["etc/preferences.d", "etc/apt.conf.d", "state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(home.join(folder)).context(format!("make {} in {}", folder, home.display()))?;
        }
        let mirrors = self.system_mirrors()?;
        let mut keys = system_keys(&mirrors);
        keys.extend(Path::new(KEYRING).exists().then(|| KEYRING.to_string()));
        keys.sort();
        keys.dedup();
        let sources = sources(&mirrors, &keys);
        let dump = self.run(Command::new("apt-config").arg("dump"))?;
        let network = network_settings(&String::from_utf8_lossy(&dump.stdout));
        let write = |path: PathBuf, text: &str| fs::write(&path, text).context(format!("write {}", path.display()));
        write(home.join("etc/sources.list"), &sources)?;
        write(home.join("state/status"), "")?;
        write(home.join("apt.conf"), &configuration(&home, &network))
    }

    /// Where the system itself fetches its release, and the release's security updates.
    fn system_mirrors(&self) -> Result<Mirrors, Error> {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let codename = os_codename(&release)
            .ok_or_else(|| Error::NotDebian { reason: "/etc/os-release is not Debian's".into() })?;
        let output = self.run(Command::new("apt-get").args(["update", "--print-uris"]))?;
        let uris = String::from_utf8_lossy(&output.stdout).into_owned();
        Mirrors::from_uris(&uris, &codename)
            .ok_or_else(|| Error::NotDebian { reason: format!("apt has no source for {codename}") })
    }

    fn apt(&self, program: &str, arguments: &[&str]) -> Result<Output, Error> {
        self.apt_in(Path::new("/"), program, arguments)
    }

    fn apt_in(&self, folder: &Path, program: &str, arguments: &[&str]) -> Result<Output, Error> {
        let mut command = Command::new(program);
        command.current_dir(folder).args(arguments).env("LC_ALL", "C").env("APT_CONFIG", self.home().join("apt.conf"));
        self.run(&mut command)
    }

    fn run(&self, command: &mut Command) -> Result<Output, Error> {
        let program = command.get_program().to_string_lossy().into_owned();
        process::output(command, self.cache.limits()).map_err(|e| {
            if process::is_absent(&e) { Error::NotDebian { reason: format!("{program} not found") } } else { e }
        })
    }

    fn succeed(&self, program: &str, arguments: &[&str]) -> Result<Output, Error> {
        let output = self.apt(program, arguments)?;
        if output.status.success() {
            return Ok(output);
        }
        Err(Error::Apt { program: program.into(), detail: last_lines(&output.stderr, 3) })
    }
}

/// The package that apt says there is none of.
fn missing(said: &str) -> Option<&str> {
    said.lines().find_map(|line| {
        let rest = line.split("Unable to locate package ").nth(1);
        rest.or_else(|| line.split("Can't find a source to download").nth(1)).map(str::trim)
    })
}

/// Whether apt says that it could not reach the mirror at all.
fn is_unreachable(stderr: &str) -> bool {
    [
        "Could not resolve",
        "Temporary failure resolving",
        "Could not connect",
        "Unable to connect",
        "Connection failed",
        "Connection refused",
        "Connection timed out",
        "Network is unreachable",
    ]
    .iter()
    .any(|symptom| stderr.contains(symptom))
}

fn last_lines(bytes: &[u8], count: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("; ")
}

/// The base addresses of the archive and of its security updates.
#[derive(Debug, PartialEq, Eq)]
struct Mirrors {
    main: String,
    security: Option<String>,
}

impl Mirrors {
    /// Reads the lines `'BASE/dists/SUITE/InRelease' NAME SIZE` of `apt-get update --print-uris`.
    fn from_uris(uris: &str, codename: &str) -> Option<Self> {
        let base_of = |suite: &str| {
            let tail = format!("/dists/{suite}/InRelease");
            uris.lines().find_map(|line| {
                let uri = line.split('\'').nth(1)?;
                uri.strip_suffix(&tail).map(str::to_string)
            })
        };
        Some(Self { main: base_of(codename)?, security: base_of(&format!("{codename}-security")) })
    }
}

/// `VERSION_CODENAME` of a Debian-like os-release.
fn os_codename(release: &str) -> Option<String> {
    let value =
        |key: &str| release.lines().find_map(|line| line.strip_prefix(key)).map(|v| v.trim_matches('"').to_string());
    value("ID=").filter(|id| id == "debian")?;
    value("VERSION_CODENAME=")
}

/// The key files that the system's own sources name for these mirrors.
fn system_keys(mirrors: &Mirrors) -> Vec<String> {
    let folder = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten();
    let files = folder.filter_map(|entry| entry.ok().map(|e| e.path())).chain([PathBuf::from("/etc/apt/sources.list")]);
    let texts = files.filter_map(|path| fs::read_to_string(path).ok());
    texts.filter(|text| text.contains(&mirrors.main)).flat_map(|text| signed_by(&text)).collect()
}

/// The absolute paths after `Signed-By:` (deb822) or `signed-by=` (one line) in a file of sources.
fn signed_by(sources: &str) -> Vec<String> {
    let values = sources.lines().filter(|line| !line.trim_start().starts_with('#')).filter_map(|line| {
        let lower = line.to_ascii_lowercase();
        let at = lower.find("signed-by")? + "signed-by".len();
        Some(line[at..].trim_start_matches([':', '=', ' ']).split(']').next().unwrap_or_default())
    });
    let paths = values.flat_map(|value| value.split([',', ' ']).map(str::trim)).filter(|path| path.starts_with('/'));
    paths.map(Into::into).collect()
}

fn sources(mirrors: &Mirrors, keys: &[String]) -> String {
    // Without a key file, apt uses the system's trusted keys (Dir::Etc::trustedparts).
    let option = if keys.is_empty() { String::new() } else { format!("[signed-by={}] ", keys.join(",")) };
    let line = |base: &str, suite: &str| format!("deb {option}{base} {suite} main\n");
    let mut text: String = SUITES.iter().map(|suite| line(&mirrors.main, suite)).collect();
    if let Some(security) = &mirrors.security {
        text.extend(SECURED.iter().map(|suite| line(security, &format!("{suite}-security"))));
    }
    text
}

/// apt's configuration: its own directories, the system's keys and logins, and `network`, the system's settings for
/// proxies and certificates. `Dir::Etc` is set as well, so nothing else of the system's configuration is read.
fn configuration(home: &Path, network: &str) -> String {
    let home = home.display();
    format!(
        "Dir::Etc \"{home}/etc\";\n\
         Dir::Etc::trusted \"/etc/apt/trusted.gpg\";\n\
         Dir::Etc::trustedparts \"/etc/apt/trusted.gpg.d\";\n\
         Dir::Etc::netrc \"/etc/apt/auth.conf\";\n\
         Dir::Etc::netrcparts \"/etc/apt/auth.conf.d\";\n\
         Dir::State \"{home}/state\";\n\
         Dir::State::status \"{home}/state/status\";\n\
         Dir::Cache \"{home}/cache\";\n\
         APT::Architecture \"amd64\";\n\
         APT::Architectures {{ \"amd64\"; }};\n\
         APT::Sandbox::User \"root\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::Retries \"2\";\n\
         {network}"
    )
}

/// The lines of `apt-config dump` that say how the network is reached.
fn network_settings(dump: &str) -> String {
    let about_network = |line: &&str| line.starts_with("Acquire::http") || line.starts_with("Acquire::ftp");
    // A line without a value (`Acquire::http "";`) only opens a scope.
    dump.lines()
        .filter(about_network)
        .filter(|line| !line.ends_with(" \"\";"))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const URIS: &str = "\
'http://mirror.example/debian/dists/bookworm/InRelease' mirror.example_debian_dists_bookworm_InRelease 0
'http://mirror.example/debian/dists/bookworm-updates/InRelease' x 0
'http://sec.example/debian-security/dists/bookworm-security/InRelease' y 0
'https://other.example/node/dists/nodistro/InRelease' z 0";

    #[test]
    fn takes_mirrors_from_the_systems_own_sources() {
        let mirrors = Mirrors::from_uris(URIS, "bookworm").unwrap();
        assert_eq!(mirrors.main, "http://mirror.example/debian");
        assert_eq!(mirrors.security.as_deref(), Some("http://sec.example/debian-security"));
    }

    #[test]
    fn finds_no_mirror_for_a_release_without_source() {
        assert_eq!(Mirrors::from_uris(URIS, "trixie"), None);
    }

    #[test]
    fn adds_suites_to_the_mirror_and_names_no_other() {
        let mirrors = Mirrors::from_uris(URIS, "bookworm").unwrap();
        let text = sources(&mirrors, &[KEYRING.to_string()]);
        assert!(text.contains("http://mirror.example/debian trixie-backports main"));
        assert!(text.contains("http://sec.example/debian-security bullseye-security main"));
        assert!(text.lines().all(|line| line.contains("signed-by=") && line.contains(".example/")));
    }

    #[test]
    fn keeps_the_systems_proxy_and_drops_its_other_settings() {
        let dump = "Acquire::http \"\";\nAcquire::http::Proxy \"http://proxy.example:3128\";\nAcquire::IndexTargets::deb::DEP-11 \"\";\nAPT::X \"1\";\n";
        assert_eq!(network_settings(dump), "Acquire::http::Proxy \"http://proxy.example:3128\";\n");
    }

    #[test]
    fn takes_the_keys_that_the_systems_sources_name() {
        let deb822 = "Types: deb\nURIs: http://mirror.example/debian\nSigned-By: /usr/share/keyrings/own.gpg\n";
        assert_eq!(signed_by(deb822), ["/usr/share/keyrings/own.gpg"]);
        let line = "deb [arch=amd64 signed-by=/a.gpg,/b.gpg] http://mirror.example/debian bookworm main\n";
        assert_eq!(signed_by(line), ["/a.gpg", "/b.gpg"]);
        assert_eq!(signed_by("# Signed-By: /x.gpg\nSigned-By: ABCDEF\n"), Vec::<String>::new());
    }

    #[test]
    fn tells_an_unreachable_mirror_from_other_failures() {
        assert!(is_unreachable("Err:1 x\n  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111)"));
        assert!(is_unreachable("  Temporary failure resolving 'mirror.example'"));
        assert!(!is_unreachable("E: Failed to fetch x  404  Not Found"));
        assert!(!is_unreachable("W: GPG error: x InRelease: the signatures could not be verified"));
    }

    #[test]
    fn knows_debian_by_its_os_release() {
        assert_eq!(os_codename("ID=debian\nVERSION_CODENAME=bookworm\n").as_deref(), Some("bookworm"));
        assert_eq!(os_codename("ID=fedora\nVERSION_CODENAME=\"\"\n"), None);
    }
}
