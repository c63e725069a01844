//! Where a study ran: what a reader needs to know to judge its figures or to repeat them.

use std::{fs, thread};

use tollgate_vm::{Cache, Error, Package, guest};

use crate::{
    laboratory::Laboratory,
    results::{Environment, KernelImage},
};

/// Looks at this host and at what the boots were made of. `revision` is the program's own.
pub fn describe(cache: &Cache, laboratory: &Laboratory<'_>, revision: Option<&str>) -> Result<Environment, Error> {
    let kernels: Vec<KernelImage> = laboratory.kernels().map(|(spec, kernel)| image(spec, kernel)).collect();
    Ok(Environment {
        tollgate: env!("CARGO_PKG_VERSION").into(),
        revision: revision.map(Into::into),
        qemu: if kernels.is_empty() { None } else { Some(guest::emulator_version()?) },
        cpu: processor(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        cores: thread::available_parallelism().map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        host: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
        kernels,
        packages: policy_packages(cache),
    })
}

fn image(spec: &str, kernel: &tollgate_vm::Kernel) -> KernelImage {
    match kernel.packages.first() {
        Some(package) => {
            KernelImage { kernel: spec.into(), package: package.name.clone(), version: package.version.clone() }
        }
        None => {
            KernelImage { kernel: spec.into(), package: kernel.image.display().to_string(), version: String::new() }
        }
    }
}

/// What the cached policies and their tools were built from.
fn policy_packages(cache: &Cache) -> Vec<String> {
    let records = crate::policies::RECORDS.map(|record| fs::read(cache.path(record)).unwrap_or_default());
    let packages = records.iter().filter_map(|text| serde_json::from_slice::<Vec<Package>>(text).ok()).flatten();
    packages.map(|package| format!("{} {}", package.name, package.version)).collect()
}

/// The first `model name` of /proc/cpuinfo.
fn processor(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_processors_name() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: A 9 @ 1GHz\nmodel name\t: B\n"), "A 9 @ 1GHz");
        assert_eq!(processor(""), "");
    }
}
