//! What dpkg knows about files: their packages, and which are configuration.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// The package of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// Name of the package.
    pub name: String,
    /// Configuration files, which the administrator may change.
    pub conffiles: BTreeSet<PathBuf>,
    /// Directories of the package, and of packages with the same source, in which no other source has files.
    pub folders: BTreeSet<PathBuf>,
}

/// The packages of each path in the output of `dpkg-query --search PATH...`: `nginx-common, nginx-light: /etc/nginx`.
#[must_use]
pub fn owners(text: &str) -> BTreeMap<PathBuf, BTreeSet<String>> {
    let mut owners: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    // `diversion by PACKAGE from: PATH` is about a path that another package provides now.
    for line in text.lines().filter(|line| !line.starts_with("diversion by ")) {
        let Some((packages, path)) = line.split_once(": /") else { continue };
        let packages = packages.split(", ").map(|name| without_architecture(name).to_owned());
        owners.entry(PathBuf::from(format!("/{path}"))).or_default().extend(packages);
    }
    owners
}

/// Turns `libc6:amd64` into libc6.
fn without_architecture(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

/// The configuration files in the output of `dpkg-query --show --showformat='${Conffiles}'`, such as ` /etc/x MD5`,
/// without those that an older version left behind.
#[must_use]
pub fn conffiles(text: &str) -> BTreeSet<PathBuf> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let path = words.next().filter(|path| path.starts_with('/'))?;
        (!words.any(|word| word == "obsolete")).then(|| PathBuf::from(path))
    };
    text.lines().filter_map(line).collect()
}

/// Directories of services are in these.
const ROOTS: [&str; 8] = ["/etc", "/usr/share", "/var/lib", "/var/cache", "/var/log", "/var/spool", "/srv", "/opt"];

/// Those of a package's files that may be its own directories, because they are directly in one of [`ROOTS`].
pub fn folders<'f>(files: impl IntoIterator<Item = &'f Path>) -> BTreeSet<PathBuf> {
    let files: BTreeSet<&Path> = files.into_iter().collect();
    let in_root = |path: &Path| path.parent().and_then(Path::to_str).is_some_and(|parent| ROOTS.contains(&parent));
    // A path is known to be a directory if other files of the list are in it. An empty directory is recognized only by
    // its name.
    let parents: BTreeSet<&Path> = files.iter().filter_map(|path| path.parent()).collect();
    let is_folder = |path: &Path| parents.contains(path) || path.starts_with("/var");
    files.into_iter().filter(|path| in_root(path) && is_folder(path)).map(Path::to_path_buf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> BTreeSet<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn reads_whose_a_path_is() {
        let text = "nginx-common, nginx-light: /etc/nginx\nlibc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\n\
                    diversion by dash from: /bin/sh\ndiversion by dash to: /bin/sh.distrib\ndash: /bin/sh\n";
        let owners = owners(text);
        assert_eq!(owners[Path::new("/etc/nginx")], ["nginx-common", "nginx-light"].map(str::to_owned).into());
        assert_eq!(owners[Path::new("/lib/x86_64-linux-gnu/libc.so.6")], ["libc6".to_owned()].into());
        assert_eq!(owners[Path::new("/bin/sh")], ["dash".to_owned()].into());
        assert_eq!(owners.len(), 3);
    }

    #[test]
    fn reads_conffiles_without_those_left_behind() {
        let text = "\n /etc/nginx/nginx.conf 5e9e\n /etc/nginx/old 0123 obsolete\n /etc/default/nginx 9876\n";
        assert_eq!(conffiles(text), paths(&["/etc/default/nginx", "/etc/nginx/nginx.conf"]));
    }

    #[test]
    fn finds_the_directories_of_a_package_and_none_that_all_have() {
        let files = [
            "/.",
            "/etc",
            "/etc/redis",
            "/etc/redis/redis.conf",
            "/etc/default",
            "/etc/default/redis-server",
            "/usr/bin",
            "/usr/bin/redis-server",
            "/usr/share",
            "/usr/share/redis",
            "/usr/share/redis/a",
            "/var/lib",
            "/var/lib/redis",
            "/var/log/redis",
            "/etc/redis.conf",
        ];
        let found = folders(files.iter().map(Path::new));
        // Whether others have files in /etc/default as well dpkg is asked.
        assert_eq!(
            found,
            paths(&["/etc/default", "/etc/redis", "/usr/share/redis", "/var/lib/redis", "/var/log/redis"])
        );
    }
}
