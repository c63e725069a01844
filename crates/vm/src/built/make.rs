//! Runs the kernel's own build.

use std::{ffi::OsString, fs, io::ErrorKind, path::Path, process::Command, thread, time::Duration};

use tollgate_host::{
    Cache, CacheLock,
    process::{self, Limits},
};

use crate::{Error, error::Context};

/// The build's log, in the folder of objects.
const LOG: &str = "build.log";
/// The requested configuration, in the folder of objects; it exists once the source has accepted all of it.
const ANSWERS: &str = "tollgate.config";
/// The requested configuration before it is accepted.
const ASKED: &str = "tollgate.config.asked";
/// How long a build may take; every machine that is fit for measuring is faster.
const BUILD_TIMEOUT: Duration = Duration::from_secs(12 * 3600);
/// How many lines of the log an error shows.
const SHOWN: usize = 12;

/// A build.
#[derive(Debug, Clone, Copy)]
pub(super) struct Make<'a> {
    /// The kernel's source.
    pub(super) source: &'a Path,
    /// The folder of objects, in the source.
    pub(super) objects: &'a Path,
    pub(super) cache: &'a Cache,
    /// make holds the lock as well: if this program is killed, make still writes the objects.
    pub(super) lock: &'a CacheLock,
}

impl Make<'_> {
    /// Makes `.config` from the answers, unless it was made from the same answers before; make then need not check
    /// everything.
    pub(super) fn configure(self, answers: &str) -> Result<(), Error> {
        let file = self.objects.join(ANSWERS);
        let same = fs::read_to_string(&file).is_ok_and(|there| there == answers);
        if same && self.objects.join(".config").exists() {
            return Ok(());
        }
        // If the build is stopped from here on, it is configured again.
        match fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
        .context(format!("remove {}", file.display()))?;
        let asked = self.objects.join(ASKED);
        fs::write(&asked, answers).context(format!("write {}", asked.display()))?;
        self.run(self.command(&["allnoconfig"]).env("KCONFIG_ALLCONFIG", &asked), &mut |_| {})?;
        self.check(answers)?;
        fs::rename(&asked, &file).context(format!("make {}", file.display()))
    }

    /// Compiles what is not compiled yet; `files` is approximately the number of files.
    pub(super) fn compile(self, files: usize, progress: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        self.run(&mut self.command(&[&format!("-j{threads}"), "bzImage"]), &mut |log| {
            progress(&format!("compiled {} files now, of about {files} in all", compiled(log)));
        })
    }

    /// Kconfig silently leaves out symbols that it does not know, or whose dependencies are missing.
    fn check(self, answers: &str) -> Result<(), Error> {
        let path = self.objects.join(".config");
        let made = fs::read_to_string(&path).context(format!("read {}", path.display()))?;
        let refused = refused(answers, &made);
        if refused.is_empty() {
            return Ok(());
        }
        Err(Error::NotCompiled {
            detail: format!("this source takes no {}", refused.join(", ")),
            log: self.objects.join(".config"),
        })
    }

    /// `make`, without everything that could make two builds of one source differ.
    fn command(self, arguments: &[&str]) -> Command {
        let mut command = Command::new("nice");
        self.lock.keep_in(command.args(["make", "-C"]).arg(self.source).args(arguments));
        command.arg(joined("O=", self.objects)).args(["ARCH=x86_64", "CC=ccache gcc"]);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_makes_own(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        command.env("CCACHE_DIR", self.cache.path("ccache")).env("CCACHE_BASEDIR", self.source);
        // Only the debug data of types contains the folder's own path, and it is removed from them.
        command.envs([("CCACHE_NOHASHDIR", "1"), ("CCACHE_MAXSIZE", "2G"), ("LC_ALL", "C")]);
        command.envs([
            ("KBUILD_BUILD_TIMESTAMP", "2026-01-01 00:00:00 UTC"),
            ("KBUILD_BUILD_USER", "tollgate"),
            ("KBUILD_BUILD_HOST", "tollgate"),
            ("KBUILD_BUILD_VERSION", "1"),
        ]);
        command
    }

    fn run(self, command: &mut Command, watch: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let log = self.objects.join(LOG);
        let limits = Limits { timeout: BUILD_TIMEOUT, ..self.cache.limits() };
        let status = process::logged(command, &log, limits, &mut || {
            watch(&fs::read_to_string(&log).unwrap_or_default());
        })?;
        if status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        Err(Error::NotCompiled { detail: why(&text), log })
    }
}

fn joined(word: &str, path: &Path) -> OsString {
    let mut all = OsString::from(word);
    all.push(path);
    all
}

/// Variables by which another make, or the user's shell, would change the build.
fn is_makes_own(name: &str) -> bool {
    ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "ARCH", "CROSS_COMPILE", "LLVM", "O"].contains(&name)
        || ["KCONFIG_", "KBUILD_", "CCACHE_", "KCFLAGS", "KCPPFLAGS"].iter().any(|start| name.starts_with(start))
}

/// The answers that a `.config` lacks, or, where the answer is no, contains.
fn refused<'a>(answers: &'a str, made: &str) -> Vec<&'a str> {
    let is_taken = |answer: &str| match no(answer) {
        // A symbol that the source does not know, or does not offer, is not set either.
        Some(symbol) => !made.lines().any(|line| line.split_once('=').is_some_and(|(other, _)| other == symbol)),
        None => !answer.starts_with("CONFIG_") || made.lines().any(|line| line == answer),
    };
    answers.lines().filter(|answer| !is_taken(answer)).collect()
}

/// The symbol of `# CONFIG_X is not set`.
fn no(answer: &str) -> Option<&str> {
    answer.strip_prefix("# ")?.strip_suffix(" is not set").filter(|symbol| symbol.starts_with("CONFIG_"))
}

/// The number of C files in a log: lines such as `  CC      fs/open.o`.
fn compiled(log: &str) -> usize {
    log.lines().filter(|line| line.trim_start().starts_with("CC ")).count()
}

/// The lines with the error, or the last ones.
fn why(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let at = lines.iter().position(|line| line.contains("error:") || line.contains("Error ") || line.contains("***"));
    let from = at.unwrap_or(lines.len().saturating_sub(SHOWN));
    lines[from..].iter().take(SHOWN).copied().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_which_answers_a_source_does_not_take() {
        let made = "CONFIG_SMP=y\n# CONFIG_SECURITY is not set\nCONFIG_NETLABEL=m\n";
        assert_eq!(refused("# the machine\nCONFIG_SMP=y\nCONFIG_NETLABEL=y\n", made), ["CONFIG_NETLABEL=y"]);
        let no =
            "# all that is not set\n# CONFIG_SECURITY is not set\n# CONFIG_IMA is not set\n# CONFIG_NET is not set\n";
        assert_eq!(refused(no, made), Vec::<&str>::new());
        for made in ["CONFIG_NETLABEL=m\nCONFIG_SECURITY=y\n", "CONFIG_SECURITY=m\n"] {
            assert_eq!(refused(no, made), ["# CONFIG_SECURITY is not set"]);
        }
    }

    #[test]
    fn remembers_answers_only_once_the_source_has_taken_them() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let lock = cache.lock("building").unwrap();
        let objects = dir.path().join("objects");
        fs::create_dir(&objects).unwrap();
        // A source without CONFIG_NEW, which must not be built while the last answers count as accepted.
        let rule =
            "allnoconfig:\n\ttest ! -e $(O)/tollgate.config\n\tgrep -v NEW $(KCONFIG_ALLCONFIG) >$(O)/.config; true\n";
        fs::write(dir.path().join("Makefile"), rule).unwrap();
        let make = Make { source: dir.path(), objects: &objects, cache: &cache, lock: &lock };
        make.configure("CONFIG_SMP=y\n").unwrap();
        assert_eq!(fs::read_to_string(objects.join(ANSWERS)).unwrap(), "CONFIG_SMP=y\n");
        for _ in 0..2 {
            let error = make.configure("CONFIG_SMP=y\nCONFIG_NEW=y\n").unwrap_err().to_string();
            assert!(error.contains("takes no CONFIG_NEW=y"), "{error}");
            assert!(!objects.join(ANSWERS).exists());
        }
        make.configure("CONFIG_SMP=y\n# CONFIG_NEW is not set\n").unwrap();
    }

    #[test]
    fn counts_what_is_compiled() {
        assert_eq!(compiled("  CC      fs/open.o\n  AR      fs/built-in.a\n  CC      fs/stat.o\n  CCLD x\n"), 2);
    }

    #[test]
    fn shows_the_first_error_and_what_follows() {
        let log = "  CC      a.o\n../a.c:1:1: error: no\nmake[2]: *** [a.o] Error 1\n";
        assert_eq!(why(log), "../a.c:1:1: error: no\nmake[2]: *** [a.o] Error 1");
        assert_eq!(why("one\n\ntwo\n"), "one\ntwo");
    }

    #[test]
    fn keeps_the_users_environment_out_of_the_build() {
        assert!(is_makes_own("MAKEFLAGS") && is_makes_own("KBUILD_OUTPUT") && is_makes_own("CCACHE_DISABLE"));
        assert!(!is_makes_own("PATH") && !is_makes_own("HOME"));
    }
}
