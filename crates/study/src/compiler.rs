//! The compiler that the workload `make` builds with: Debian's packages, unpacked, and of them what a build runs.

use std::path::{Path, PathBuf};

use tollgate_policy::debian::SUITE;
use tollgate_vm::{Cache, Image, Packages};

use crate::{
    policies::{PolicyError, library_folders, write_record},
    study::Study,
};

/// The packages, with those of the libraries that their programs need; libc is the host's, as for all that is in an image.
const PACKAGES: [&str; 13] = [
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
];
/// Where they are unpacked in the cache.
const FOLDER: &str = "compiler/bookworm";
/// Where the cache records them.
pub(crate) const RECORD: &str = "compiler/bookworm/packages.json";

/// Programs in the packages, and where a build looks for them.
const PROGRAMS: [(&str, &str); 6] = [
    ("usr/bin/make", "/usr/bin/make"),
    ("usr/bin/x86_64-linux-gnu-gcc-12", "/usr/bin/gcc"),
    ("usr/bin/x86_64-linux-gnu-as", "/usr/bin/as"),
    ("usr/bin/x86_64-linux-gnu-ld.bfd", "/usr/bin/ld"),
    ("usr/lib/gcc/x86_64-linux-gnu/12/cc1", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1"),
    ("usr/lib/gcc/x86_64-linux-gnu/12/collect2", "/usr/lib/gcc/x86_64-linux-gnu/12/collect2"),
];
/// What the linker loads, whether it needs it or not.
const PLUGIN: &str = "usr/lib/gcc/x86_64-linux-gnu/12/liblto_plugin.so";

/// Whether the study builds something.
pub(crate) fn is_needed(study: &Study) -> bool {
    study.workloads.iter().any(|workload| workload.split(':').next() == Some("make"))
}

/// Puts the compiler into the guest's image; fetched first, if the cache does not have it.
pub(crate) fn provide(cache: &Cache, image: &mut Image) -> Result<(), PolicyError> {
    let folder = unpacked(cache)?;
    let libraries = library_folders(&folder);
    for (program, place) in PROGRAMS {
        image.program(&folder.join(program), place, &libraries)?;
    }
    image.host_file(&folder.join(PLUGIN), &format!("/{PLUGIN}"))?;
    Ok(())
}

fn unpacked(cache: &Cache) -> Result<PathBuf, PolicyError> {
    cache.folder(FOLDER, |fresh: &Path| {
        let names = PACKAGES.map(|name| format!("{name}/{SUITE}"));
        let fetched = Packages::new(cache).unpack(&names.each_ref().map(String::as_str), fresh)?;
        write_record(fresh, &fetched)
    })
}
