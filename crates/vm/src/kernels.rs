//! Finds kernels: Debian's cloud packages by series, built ones by name, or any bzImage by its path.

use std::{
    cmp::Ordering,
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use tollgate_host::{Cache, Error as HostError, Packages};

use crate::{
    Error, Kernel,
    built::{self, RECIPES},
    error::Context,
    kernel::RECORD,
};

const SUFFIX: &str = "-cloud-amd64";

/// A kernel that is in the suites or in the cache, or that can be built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The series, such as `6.1`.
    pub series: String,
    /// The newest release of the series; for a kernel that is built here, its description.
    pub release: String,
    /// Whether it is built here, not fetched.
    pub built: bool,
    /// The release of this series in the cache.
    pub cached: Option<String>,
}

/// The kernel that `spec` names: a path, a release, or a series such as `6.1`, newest first.
///
/// If the cache has the series, its kernel is used, so that figures do not change by themselves; `tollgate vm kernels
/// --update` looks for newer ones.
pub fn find(cache: &Cache, spec: &str) -> Result<Kernel, Error> {
    if spec.contains('/') {
        return by_path(Path::new(spec));
    }
    if let Some(kernel) = cached(cache)?.into_iter().rev().find(|k| k.series == spec || k.release == spec) {
        return if is_current(&kernel) { Ok(kernel) } else { Err(Error::Stale { name: kernel.series }) };
    }
    if let Some(recipe) = built::recipe(spec) {
        let (minutes, mebibytes) = (recipe.minutes, recipe.mebibytes);
        return Err(Error::NotBuilt { name: spec.into(), minutes, mebibytes });
    }
    let releases = releases(&Packages::new(cache))?;
    let release = newest(&releases, spec)
        .ok_or_else(|| Error::NoSuchKernel { spec: spec.into(), known: all_names(&releases).join(", ") })?;
    fetch(cache, release)
}

/// Whether a kernel was fetched, or was built by the present recipe.
fn is_current(kernel: &Kernel) -> bool {
    built::recipe(&kernel.series).is_none_or(|recipe| recipe.is_of(kernel))
}

/// Every series in the suites with its newest release, and the cached release. Offline, the cached ones.
pub fn list(cache: &Cache, update: bool) -> Result<Vec<Listed>, Error> {
    let packages = Packages::new(cache);
    let (built, cached): (Vec<Kernel>, Vec<Kernel>) =
        cached(cache)?.into_iter().filter(is_current).partition(|kernel| built::recipe(&kernel.series).is_some());
    let releases = match packages.update(update).map_err(Error::from).and_then(|()| releases(&packages)) {
        Ok(releases) => releases,
        Err(Error::Host(HostError::Offline { .. })) if !update && !cached.is_empty() => Vec::new(),
        Err(e) => return Err(e),
    };
    let mut all: Vec<String> = releases.iter().cloned().chain(cached.iter().map(|k| k.release.clone())).collect();
    all.sort_by(|a, b| by_version(a, b));
    let in_cache = |kernels: &[Kernel], series: &str| {
        kernels.iter().rev().find(|kernel| kernel.series == series).map(|kernel| kernel.release.clone())
    };
    let fetched = series_of_all(&all).into_iter().map(|series| Listed {
        release: newest(&all, &series).unwrap_or_default().to_string(),
        built: false,
        cached: in_cache(&cached, &series),
        series,
    });
    let to_build = RECIPES.iter().map(|recipe| Listed {
        series: recipe.name.into(),
        release: recipe.about.into(),
        built: true,
        cached: in_cache(&built, recipe.name),
    });
    Ok(fetched.chain(to_build).collect())
}

/// Fetches the newest release of a series even if an older one is cached.
pub fn refresh(cache: &Cache, series: &str) -> Result<Kernel, Error> {
    let releases = releases(&Packages::new(cache))?;
    match newest(&releases, series) {
        Some(release) => fetch(cache, release),
        None => find(cache, series),
    }
}

fn by_path(image: &Path) -> Result<Kernel, Error> {
    let image = image.canonicalize().context(format!("open the kernel {}", image.display()))?;
    let release = image.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let version = release.trim_start_matches("vmlinuz-").to_string();
    let modules = PathBuf::from("/lib/modules").join(&version);
    let modules = modules.is_dir().then_some(modules);
    Ok(Kernel {
        series: series_of(&version).unwrap_or_else(|| version.clone()),
        release: version,
        image,
        modules,
        packages: Vec::new(),
        recipe: None,
    })
}

/// Kernels in the cache, oldest first.
fn cached(cache: &Cache) -> Result<Vec<Kernel>, Error> {
    let folder = cache.path("kernels");
    let Ok(entries) = fs::read_dir(&folder) else {
        return Ok(Vec::new());
    };
    let mut kernels = Vec::new();
    // A name that begins with a dot is an unfinished kernel.
    let is_whole = |entry: &fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
    for entry in entries.filter_map(Result::ok).filter(is_whole) {
        let record = entry.path().join(RECORD);
        let Ok(text) = fs::read_to_string(&record) else { continue };
        let kernel: Kernel = serde_json::from_str(&text)
            .map_err(std::io::Error::from)
            .context(format!("read {} (delete its folder to fetch that kernel again)", record.display()))?;
        kernels.push(kernel.below(&entry.path()));
    }
    kernels.sort_by(|a, b| by_version(&a.release, &b.release));
    Ok(kernels)
}

/// Releases of all cloud kernels in the suites, oldest first.
fn releases(packages: &Packages<'_>) -> Result<Vec<String>, Error> {
    let names = packages.names(|name| release_of_package(name).is_some())?;
    let mut releases: Vec<String> = names.iter().filter_map(|n| release_of_package(n)).map(Into::into).collect();
    releases.sort_by(|a, b| by_version(a, b));
    Ok(releases)
}

/// `linux-image-6.1.0-56-cloud-amd64` contains release `6.1.0-56-cloud-amd64`; the dependency package
/// `linux-image-6.1-cloud-amd64` and unsigned or debug packages contain none.
fn release_of_package(name: &str) -> Option<&str> {
    let release = name.strip_prefix("linux-image-").filter(|r| r.ends_with(SUFFIX))?;
    let version = release.strip_suffix(SUFFIX)?;
    (version.starts_with(|c: char| c.is_ascii_digit()) && version.matches('.').count() >= 2).then_some(release)
}

fn series_of(release: &str) -> Option<String> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty());
    Some(format!("{}.{}", numbers.next()?, numbers.next()?))
}

fn series_of_all(releases: &[String]) -> Vec<String> {
    let mut series: Vec<String> = releases.iter().filter_map(|r| series_of(r)).collect();
    series.sort_by(|a, b| by_version(a, b));
    series.dedup();
    series
}

/// All names of kernels.
fn all_names(releases: &[String]) -> Vec<String> {
    series_of_all(releases).into_iter().chain(RECIPES.iter().map(|recipe| recipe.name.to_owned())).collect()
}

fn newest<'r>(releases: &'r [String], spec: &str) -> Option<&'r str> {
    releases.iter().rev().find(|r| *r == spec || series_of(r).as_deref() == Some(spec)).map(String::as_str)
}

/// Compares sequences of digits by value, everything else by bytes: enough to order releases of one distribution.
fn by_version(a: &str, b: &str) -> Ordering {
    pieces(a).cmp(&pieces(b))
}

fn pieces(text: &str) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let word = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |n| digits + n);
        all.push((rest[..digits].parse().unwrap_or(0), rest[digits..word].to_string()));
        rest = &rest[word..];
    }
    all
}

fn fetch(cache: &Cache, release: &str) -> Result<Kernel, Error> {
    let packages = Packages::new(cache);
    // Since 6.19 the image package is a stub: image and modules are in packages of their own.
    let parts = ["linux-image-", "linux-binary-", "linux-modules-"].map(|kind| format!("{kind}{release}"));
    let there = packages.names(|name| parts.iter().any(|part| part == name))?;
    let names: Vec<&str> = there.iter().map(String::as_str).collect();
    let folder = cache.folder(&format!("kernels/{release}"), |fresh| {
        let fetched = packages.unpack(&names, fresh)?;
        let kernel = Kernel {
            release: release.into(),
            series: series_of(release).unwrap_or_default(),
            image: locate(fresh, &image_candidates(release)).ok_or_else(|| Error::NoImage {
                release: release.into(),
                wanted: image_candidates(release).join(" or "),
            })?,
            modules: locate(fresh, &module_candidates(release)),
            packages: fetched,
            recipe: None,
        };
        let record = serde_json::to_vec_pretty(&kernel).map_err(std::io::Error::from).context("write the record")?;
        fs::write(fresh.join(RECORD), record).context(format!("write {RECORD}"))
    })?;
    let text = fs::read_to_string(folder.join(RECORD)).context(format!("read {RECORD} of {release}"))?;
    let kernel: Kernel = serde_json::from_str(&text).map_err(std::io::Error::from).context("read the record")?;
    Ok(kernel.below(&folder))
}

fn image_candidates(release: &str) -> [String; 2] {
    [format!("boot/vmlinuz-{release}"), format!("usr/lib/modules/{release}/vmlinuz")]
}

fn module_candidates(release: &str) -> [String; 2] {
    [format!("lib/modules/{release}"), format!("usr/lib/modules/{release}")]
}

fn locate(folder: &Path, candidates: &[String]) -> Option<PathBuf> {
    candidates.iter().find(|path| folder.join(path).exists()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn releases() -> Vec<String> {
        ["6.1.0-9", "6.1.0-56", "6.12.9+deb13", "6.12.117+deb12", "7.2.12+deb13"]
            .map(|v| format!("{v}-cloud-amd64"))
            .to_vec()
    }

    #[test]
    fn orders_releases_by_number_not_by_letter() {
        let mut shuffled = releases();
        shuffled.reverse();
        shuffled.sort_by(|a, b| by_version(a, b));
        assert_eq!(shuffled, releases());
    }

    #[test]
    fn takes_the_newest_of_a_series() {
        assert_eq!(newest(&releases(), "6.1"), Some("6.1.0-56-cloud-amd64"));
        assert_eq!(newest(&releases(), "6.12"), Some("6.12.117+deb12-cloud-amd64"));
        assert_eq!(newest(&releases(), "6.12.9+deb13-cloud-amd64"), Some("6.12.9+deb13-cloud-amd64"));
        assert_eq!(newest(&releases(), "6.2"), None);
    }

    #[test]
    fn tells_kernels_from_dependency_and_unsigned_packages() {
        assert_eq!(release_of_package("linux-image-6.1.0-56-cloud-amd64"), Some("6.1.0-56-cloud-amd64"));
        assert_eq!(release_of_package("linux-image-6.12-cloud-amd64"), None);
        assert_eq!(release_of_package("linux-image-cloud-amd64"), None);
        assert_eq!(release_of_package("linux-image-6.1.0-56-cloud-amd64-unsigned"), None);
        assert_eq!(release_of_package("linux-image-6.1.0-56-amd64"), None);
    }

    #[test]
    fn names_each_series_once_in_order() {
        assert_eq!(series_of_all(&releases()), ["6.1", "6.12", "7.2"]);
    }

    #[test]
    fn refuses_a_kernel_that_is_not_built_and_says_how_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        for recipe in &RECIPES {
            let error = find(&cache, recipe.name).unwrap_err().to_string();
            assert!(error.contains(&format!("tollgate vm build {}`", recipe.name)), "{error}");
            assert!(error.contains("minutes") && error.contains("MiB"), "{error}");
        }
    }

    fn put(cache: &Cache, folder: &str, release: &str, series: &str) {
        let folder = cache.path("kernels").join(folder);
        fs::create_dir_all(&folder).unwrap();
        let recipe = built::recipe(series).map(built::Recipe::hash);
        let (release, series) = (release.to_owned(), series.to_owned());
        let kernel = Kernel { release, series, image: "vmlinuz".into(), modules: None, packages: Vec::new(), recipe };
        fs::write(folder.join(RECORD), serde_json::to_vec(&kernel).unwrap()).unwrap();
    }

    #[test]
    fn takes_no_kernel_from_a_folder_that_was_left_half_made() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        put(&cache, "6.1.0-56-cloud-amd64", "6.1.0-56-cloud-amd64", "6.1");
        put(&cache, ".making-x", "6.1.0-57-cloud-amd64", "6.1");
        assert_eq!(find(&cache, "6.1").unwrap().release, "6.1.0-56-cloud-amd64");
    }

    #[test]
    fn never_takes_a_built_kernel_for_debians() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        put(&cache, "6.1.0-56-cloud-amd64", "6.1.0-56-cloud-amd64", "6.1");
        put(&cache, "6.1-built", "6.1.192-built", "6.1-built");
        assert_eq!(find(&cache, "6.1").unwrap().release, "6.1.0-56-cloud-amd64");
        assert_eq!(find(&cache, "6.1-built").unwrap().release, "6.1.192-built");
    }

    #[test]
    fn reports_a_missing_image_by_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let error = find(&cache, "/nonexistent/vmlinuz").unwrap_err().to_string();
        assert!(error.contains("/nonexistent/vmlinuz"), "{error}");
    }
}
