//! The programs that workloads run: Debian's packages, unpacked, and the files of them that go into a guest's image.

use std::path::PathBuf;

use tollgate_host::Cache;
use tollgate_vm::Image;

use crate::policies::{PolicyError, library_folders, unpacked};

/// The programs of one workload.
struct Programs {
    /// The workload's name.
    workload: &'static str,
    /// The packages, with those of the libraries that the programs need; libc is the host's, as for all programs in an image.
    packages: &'static [&'static str],
    /// Their folder in the cache.
    folder: &'static str,
    /// The record of the packages in the cache.
    record: &'static str,
    /// Programs in the packages, and their paths in the guest.
    programs: &'static [(&'static str, &'static str)],
    /// Other files, which keep their paths.
    files: &'static [&'static str],
}

/// Of both workloads that run it.
const OPENSSL: Programs = Programs {
    workload: "digests",
    packages: &["openssl", "libssl3"],
    folder: "openssl/bookworm",
    record: "openssl/bookworm/packages.json",
    programs: &[("usr/bin/openssl", "/usr/bin/openssl")],
    files: &[],
};

static ALL: [Programs; 4] = [
    Programs {
        workload: "make",
        packages: &[
            "make",
            "gcc-12",
            "cpp-12",
            "binutils-x86-64-linux-gnu",
            "libbinutils",
            "libctf0",
            "libjansson4",
            "libisl23",
            "libmpc3",
            "libmpfr6",
            "libgmp10",
            "libzstd1",
            "zlib1g",
        ],
        folder: "compiler/bookworm",
        record: "compiler/bookworm/packages.json",
        programs: &[
            ("usr/bin/make", "/usr/bin/make"),
            ("usr/bin/x86_64-linux-gnu-gcc-12", "/usr/bin/gcc"),
            ("usr/bin/x86_64-linux-gnu-as", "/usr/bin/as"),
            ("usr/bin/x86_64-linux-gnu-ld.bfd", "/usr/bin/ld"),
            ("usr/lib/gcc/x86_64-linux-gnu/12/cc1", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1"),
            ("usr/lib/gcc/x86_64-linux-gnu/12/collect2", "/usr/lib/gcc/x86_64-linux-gnu/12/collect2"),
        ],
        // The linker loads this plugin even if it does not need it.
        files: &["usr/lib/gcc/x86_64-linux-gnu/12/liblto_plugin.so"],
    },
    Programs {
        workload: "rsync",
        packages: &["rsync", "libacl1", "liblz4-1", "libpopt0", "libssl3", "libxxhash0", "libzstd1", "zlib1g"],
        folder: "rsync/bookworm",
        record: "rsync/bookworm/packages.json",
        programs: &[("usr/bin/rsync", "/usr/bin/rsync")],
        files: &[],
    },
    OPENSSL,
    Programs { workload: "prime", ..OPENSSL },
];

fn needed(workloads: &[String]) -> impl Iterator<Item = &'static Programs> {
    let runs = |name: &str| workloads.iter().any(|workload| workload.split(':').next() == Some(name));
    ALL.iter().filter(move |programs| runs(programs.workload))
}

/// The cache's records of the packages whose programs the workloads run.
pub(crate) fn records(workloads: &[String]) -> impl Iterator<Item = &'static str> {
    needed(workloads).map(|programs| programs.record)
}

/// Puts the programs of the workloads (by selection) into the guest's image, and fetches them first if the cache does not
/// have them. `progress` is called for each workload that needs some.
pub fn provide(
    cache: &Cache,
    workloads: &[String],
    image: &mut Image,
    progress: &mut dyn FnMut(&str),
) -> Result<(), PolicyError> {
    for programs in needed(workloads) {
        progress(&format!("what {} runs", programs.workload));
        let folder = programs.unpacked(cache)?;
        let libraries = library_folders(&folder);
        for (program, place) in programs.programs {
            image.program(&folder.join(program), place, &libraries)?;
        }
        for file in programs.files {
            image.host_file(&folder.join(file), &format!("/{file}"))?;
        }
    }
    Ok(())
}

impl Programs {
    fn unpacked(&self, cache: &Cache) -> Result<PathBuf, PolicyError> {
        unpacked(cache, self.folder, self.packages)
    }
}
