//! Builds kernels from Debian's source: the same kernel with LSM hooks and without.
//!
//! Everything is kept in the cache: the source, a folder of objects per kernel, and ccache's files. An interrupted build
//! continues where it was, and a finished one is only checked.

mod make;
mod source;
mod tools;

use std::{fs, path::Path};

use serde::Serialize;

use tollgate_host::{Cache, Package};

use crate::{
    Error,
    error::Context,
    kernel::{Kernel, RECORD},
};

/// Configurations in Kconfig's language: that of all kernels, and the additional one of each.
const BASE: &str = include_str!("../../kernel/base.config");
const SECURITY: &str = include_str!("../../kernel/security.config");
const NO_SECURITY: &str = include_str!("../../kernel/nosecurity.config");

/// The image that the kernel's build makes, in its folder of objects.
const IMAGE: &str = "arch/x86/boot/bzImage";
/// The files of a build that are kept: name in the kernel's folder, name in the folder of objects.
const KEPT_FILES: [(&str, &str); 3] = [("vmlinuz", IMAGE), ("System.map", "System.map"), ("config", ".config")];

/// How a kernel is built.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Recipe {
    /// The name in studies and in `--kernel`.
    pub name: &'static str,
    /// The package of the source.
    pub package: &'static str,
    /// A description for people.
    pub about: &'static str,
    /// Minutes of processor time of a build with an empty ccache.
    pub minutes: u32,
    /// MiB on the disk for the source, the objects and ccache's files.
    pub mebibytes: u64,
    /// The approximate number of C files that are compiled.
    #[serde(skip)]
    files: usize,
    #[serde(skip)]
    fragment: &'static str,
}

/// All kernels that can be built.
pub const RECIPES: [Recipe; 2] = [
    Recipe {
        name: "6.1-built",
        package: "linux-source-6.1",
        about: "with LSM hooks and all modules, Smack and tollgate_latency among them",
        minutes: 25,
        mebibytes: 4096,
        files: 1400,
        fragment: SECURITY,
    },
    Recipe {
        name: "6.1-built-nosecurity",
        package: "linux-source-6.1",
        about: "the same without LSM hooks (CONFIG_SECURITY=n)",
        minutes: 20,
        mebibytes: 2560,
        files: 1330,
        fragment: NO_SECURITY,
    },
];

/// The recipe of this name.
#[must_use]
pub fn recipe(name: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.name == name)
}

/// Refuses kernels that were built from different versions of one source, because they differ in more than their recipes.
///
/// # Errors
///
/// [`Error::DifferentSources`], of the first two.
pub fn of_one_source(kernels: &[Kernel]) -> Result<(), Error> {
    let built = || kernels.iter().filter_map(|kernel| Some((recipe(&kernel.series)?.package, kernel)));
    let differ = |(one, other): &(&Kernel, &Kernel)| one.packages != other.packages;
    let pairs = built()
        .flat_map(|(package, one)| built().filter(move |(its, _)| *its == package).map(move |(_, other)| (one, other)));
    let Some((one, other)) = pairs.into_iter().find(differ) else { return Ok(()) };
    let version = |kernel: &Kernel| kernel.packages.first().map_or_else(String::new, |package| package.version.clone());
    Err(Error::DifferentSources {
        one: one.series.clone(),
        other: other.series.clone(),
        versions: format!("{} and {}", version(one), version(other)),
    })
}

impl Recipe {
    /// Whether the cache has the kernel as this program builds it.
    #[must_use]
    pub fn is_built(&self, cache: &Cache) -> bool {
        self.kept(cache).is_some_and(|kernel| self.is_of(&kernel))
    }

    /// Whether a kernel was built by this recipe, and not by that of another version of this program.
    pub(crate) fn is_of(&self, kernel: &Kernel) -> bool {
        kernel.recipe.as_deref() == Some(self.hash().as_str())
    }

    /// A hash of everything that this program determines about the kernel: its configuration and the additions to the source.
    pub(crate) fn hash(&self) -> String {
        let configuration = self.configuration();
        let pieces = source::added().chain([configuration.as_str()]);
        // FNV-1a, with a byte after each piece that no text contains. It need not resist attacks, only show changes.
        let bytes = pieces.flat_map(|piece| piece.bytes().chain([0xff]));
        let hash =
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{hash:016x}")
    }

    /// The record of the kernel in the cache.
    fn kept(&self, cache: &Cache) -> Option<Kernel> {
        serde_json::from_slice(&fs::read(self.place(cache).join(RECORD)).ok()?).ok()
    }

    /// Builds the kernel, or the rest of it, and puts it where [`kernels::find`](crate::kernels::find) looks.
    ///
    /// `progress` is called for each step, several times per minute.
    ///
    /// # Errors
    ///
    /// [`Error::ToolsAbsent`] before anything is fetched; [`Error::NotCompiled`] with the compiler's words;
    /// [`Error::Interrupted`] after which the same call goes on.
    pub fn build(&self, cache: &Cache, progress: &mut dyn FnMut(&str)) -> Result<Kernel, Error> {
        tools::all_there()?;
        cache.needs_room(if self.objects(cache).exists() { 512 } else { self.mebibytes })?;
        // Two builds would write the same source. A kernel can be fetched meanwhile, because that takes another lock.
        let lock = cache.lock("building")?;
        progress("the source");
        let source = source::ready(cache, self.package)?;
        let objects = self.objects(cache);
        fs::create_dir_all(&objects).context(format!("make {}", objects.display()))?;
        let make = make::Make { source: &source.folder, objects: &objects, cache, lock: &lock };
        make.configure(&self.configuration())?;
        make.compile(self.files, progress)?;
        self.keep(cache, &objects, source.packages)
    }

    /// The configuration's answers, over `make allnoconfig`.
    fn configuration(&self) -> String {
        format!("{BASE}\n{}", self.fragment)
    }

    /// Inside the source: only there the kernel's build names its files by relative paths, which ccache recognises in another
    /// user's cache.
    fn objects(&self, cache: &Cache) -> std::path::PathBuf {
        source::place(cache, self.package).join(self.name)
    }

    fn place(&self, cache: &Cache) -> std::path::PathBuf {
        cache.path("kernels").join(self.name)
    }

    /// Copies the build to the folder of kernels, whole or not at all; an existing kernel is left alone.
    fn keep(&self, cache: &Cache, objects: &Path, packages: Vec<Package>) -> Result<Kernel, Error> {
        let release = objects.join("include/config/kernel.release");
        let release = fs::read_to_string(&release).context(format!("read {}", release.display()))?;
        let kernel = Kernel {
            release: release.trim().to_owned(),
            series: self.name.to_owned(),
            image: KEPT_FILES[0].0.into(),
            modules: None,
            packages,
            recipe: Some(self.hash()),
        };
        let place = self.place(cache);
        let is_kept = |(to, from)| {
            fs::read(place.join(to)).is_ok_and(|old| fs::read(objects.join(from)).is_ok_and(|new| old == new))
        };
        if self.kept(cache).as_ref() == Some(&kernel) && KEPT_FILES.into_iter().all(is_kept) {
            return Ok(kernel.below(&place));
        }
        cache.replace(&format!("kernels/{}", self.name), |fresh| {
            for (to, from) in KEPT_FILES {
                let from = objects.join(from);
                fs::copy(&from, fresh.join(to)).context(format!("copy {}", from.display()))?;
            }
            let record = serde_json::to_vec_pretty(&kernel).map_err(std::io::Error::from);
            fs::write(fresh.join(RECORD), record.context("write the record")?).context(format!("write {RECORD}"))
        })?;
        Ok(kernel.below(&place))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, os::unix::fs::MetadataExt};

    use super::*;

    /// The answers of a configuration: symbol and value, `n` for symbols that are not set.
    fn answers(text: &str) -> BTreeMap<&str, &str> {
        let mut found = BTreeMap::new();
        for line in text.lines().filter(|line| line.contains("CONFIG_")) {
            let (symbol, value) = match line.strip_prefix("# ") {
                Some(unset) => (unset.strip_suffix(" is not set").expect(line), "n"),
                None => line.split_once('=').expect(line),
            };
            assert_eq!(found.insert(symbol, value), None, "{symbol} is answered twice");
        }
        found
    }

    #[test]
    fn answers_each_question_of_a_configuration_once() {
        for recipe in &RECIPES {
            assert!(answers(&recipe.configuration()).len() > 120, "{}", recipe.name);
        }
    }

    #[test]
    fn builds_both_kernels_from_one_base_and_turns_only_security_off() {
        let [with, without] = [SECURITY, NO_SECURITY].map(answers);
        assert_eq!((with["CONFIG_SECURITY"], without["CONFIG_SECURITY"]), ("y", "n"));
        let release = "CONFIG_LOCALVERSION";
        let others: Vec<&&str> =
            without.keys().filter(|symbol| !["CONFIG_SECURITY", release].contains(symbol)).collect();
        assert!(others.is_empty(), "{others:?}");
        assert_ne!(with[release], without[release]);
    }

    #[test]
    fn has_every_module_that_a_configuration_can_ask_for() {
        let with = answers(SECURITY);
        for module in ["SELINUX", "APPARMOR", "SMACK", "TOMOYO", "YAMA", "LANDLOCK", "TOLLGATE_LATENCY"] {
            assert_eq!(with.get(format!("CONFIG_SECURITY_{module}").as_str()), Some(&"y"), "{module}");
        }
        assert_eq!(with["CONFIG_BPF_LSM"], "y");
    }

    #[test]
    fn tells_built_kernels_from_those_that_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let recipe = recipe("6.1-built").unwrap();
        assert!(!recipe.is_built(&cache));
        let objects = dir.path().join("objects");
        for (_, from) in KEPT_FILES {
            fs::create_dir_all(objects.join(from).parent().unwrap()).unwrap();
            fs::write(objects.join(from), "made").unwrap();
        }
        fs::create_dir_all(objects.join("include/config")).unwrap();
        fs::write(objects.join("include/config/kernel.release"), "6.1.9-built\n").unwrap();
        let keep = || recipe.keep(&cache, &objects, Vec::new()).unwrap();
        let kernel = keep();
        assert_eq!((kernel.release.as_str(), kernel.series.as_str()), ("6.1.9-built", "6.1-built"));
        assert_eq!(fs::read_to_string(&kernel.image).unwrap(), "made");
        assert!(recipe.is_built(&cache));
        assert_eq!(crate::kernels::find(&cache, "6.1-built").unwrap().release, "6.1.9-built");

        let number = || fs::metadata(&kernel.image).unwrap().ino();
        let first = number();
        keep();
        assert_eq!(number(), first, "nothing has changed");
        fs::write(objects.join(IMAGE), "made again").unwrap();
        keep();
        assert_eq!(fs::read_to_string(&kernel.image).unwrap(), "made again");
        assert_eq!(fs::read_dir(cache.path("kernels")).unwrap().count(), 1);
    }

    #[test]
    fn refuses_a_kernel_that_another_version_of_this_program_has_built() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let recipe = recipe("6.1-built").unwrap();
        fs::create_dir_all(recipe.place(&cache)).unwrap();
        for stale in [None, Some("0123456789abcdef".to_owned())] {
            let kernel = Kernel {
                release: "6.1.9-built".into(),
                series: recipe.name.into(),
                image: "vmlinuz".into(),
                modules: None,
                packages: Vec::new(),
                recipe: stale,
            };
            fs::write(recipe.place(&cache).join(RECORD), serde_json::to_vec(&kernel).unwrap()).unwrap();
            assert!(!recipe.is_built(&cache));
            for spec in [recipe.name, "6.1.9-built"] {
                let error = crate::kernels::find(&cache, spec).unwrap_err().to_string();
                assert!(
                    error.contains("another version") && error.contains("`tollgate vm build 6.1-built`"),
                    "{error}"
                );
            }
        }
        let [with, without] = RECIPES.each_ref().map(Recipe::hash);
        assert_ne!(with, without);
    }

    #[test]
    fn refuses_kernels_of_different_sources_side_by_side() {
        let built = |series: &str, version: &str| Kernel {
            release: "6.1.9".into(),
            series: series.into(),
            image: "vmlinuz".into(),
            modules: None,
            packages: vec![Package { name: "p".into(), version: version.into(), sha256: version.into() }],
            recipe: None,
        };
        let [with, without] = RECIPES.each_ref().map(|recipe| built(recipe.name, "6.1.9-1"));
        of_one_source(&[with.clone(), without, built("6.1", "6.1.8-1")]).unwrap();
        let error = of_one_source(&[with, built(RECIPES[1].name, "6.1.10-1")]).unwrap_err().to_string();
        assert!(error.contains("6.1.9-1 and 6.1.10-1") && error.contains("`tollgate vm build`"), "{error}");
    }
}
