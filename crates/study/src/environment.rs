//! The environment of a run: what a reader needs to judge its figures or to repeat them.

use std::{collections::BTreeSet, fs, process::Command};

use tollgate_bench::counter::Counter;
use tollgate_host::{Cache, Package};
use tollgate_vm::{Error, guest};

use crate::{
    configuration::{self, Known},
    laboratory::Laboratory,
    machine::Machine,
    programs,
    results::{Environment, KernelImage},
    study::Study,
};

/// Describes this host and the files that boots use. `revision` is the program's own.
pub fn describe(
    cache: &Cache,
    study: &Study,
    laboratory: &Laboratory<'_>,
    revision: Option<&str>,
) -> Result<Environment, Error> {
    let kernels: Vec<KernelImage> = laboratory.kernels().map(|(spec, kernel)| image(spec, kernel)).collect();
    let mut packages = Vec::new();
    if !kernels.is_empty() {
        packages = policy_packages(cache, study);
        packages.extend(host_packages());
    }
    let Machine { cpu, cores, host, hypervisor } = Machine::this();
    Ok(Environment {
        tollgate: env!("CARGO_PKG_VERSION").into(),
        revision: revision.map(Into::into),
        qemu: if kernels.is_empty() { None } else { Some(guest::emulator_version()?) },
        cpu,
        cores,
        host,
        hypervisor: Some(hypervisor),
        kernels,
        packages,
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

/// The packages from which policies and tools of the study's configurations were built.
fn policy_packages(cache: &Cache, study: &Study) -> Vec<String> {
    let texts = policy_records(study).into_iter().map(|record| fs::read(cache.path(record)).unwrap_or_default());
    let packages = texts.filter_map(|text| serde_json::from_slice::<Vec<Package>>(&text).ok()).flatten();
    packages.map(|package| format!("{} {}", package.name, package.version)).collect()
}

/// The records of the packages that the study uses.
fn policy_records(study: &Study) -> BTreeSet<&'static str> {
    let base = |name: &String| study.own(name).map_or(name.clone(), |own| own.base.clone());
    let policies = study.configurations.iter().filter_map(|name| configuration::find(&base(name)));
    policies.flat_map(Known::packages).copied().chain(programs::records(&study.workloads)).collect()
}

/// The host's packages whose files are in the guests' images; empty without dpkg.
fn host_packages() -> Vec<String> {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f=${db:Status-Status} ${Package} ${Version}\n", "busybox", "busybox-static", "e2fsprogs"]);
    // dpkg's exit status only says that it does not know one of them.
    query.output().map(|output| installed(&String::from_utf8_lossy(&output.stdout))).unwrap_or_default()
}

/// `NAME VERSION` of each installed package; dpkg also lists some that were removed.
fn installed(listing: &str) -> Vec<String> {
    listing.lines().filter_map(|line| line.strip_prefix("installed ")).map(Into::into).collect()
}

/// Differences that move figures: records of one environment cannot be continued in the other.
///
/// An instruction count depends on the program, on QEMU and on the guest's files, not on the host; wall time depends on the
/// host too.
#[must_use]
pub fn differences(before: &Environment, now: &Environment, clock: Counter) -> Vec<String> {
    let words = |e: &Environment| {
        let kernels: Vec<String> =
            e.kernels.iter().map(|k| format!("{}: {} {}", k.kernel, k.package, k.version)).collect();
        let mut words = vec![
            ("tollgate", e.tollgate.clone()),
            ("the revision", e.revision.clone().unwrap_or_else(|| "unknown".into())),
            ("QEMU", e.qemu.clone().unwrap_or_else(|| "not used".into())),
            ("the list of kernels", listed(kernels)),
            ("the list of packages", listed(e.packages.clone())),
        ];
        if clock == Counter::Wall {
            words.push(("the processor", format!("{} ({} cores)", e.cpu, e.cores)));
            words.push(("the host's kernel", e.host.clone()));
        }
        words
    };
    let pairs = words(before).into_iter().zip(words(now));
    pairs.filter(|(a, b)| a != b).map(|((what, a), (_, b))| format!("{what} was {a} and is {b}")).collect()
}

/// Sorted, so that the order in which they were found does not matter.
fn listed(mut words: Vec<String>) -> String {
    words.sort();
    if words.is_empty() { "empty".into() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::{APPARMOR_RECORD, SELINUX_RECORD};
    use crate::results::examples::{boot, head};

    fn study(configurations: &str) -> Study {
        let text = format!(
            "name = \"x\"\ntitle = \"X\"\nclock = \"instructions\"\nkernels = [\"6.1\"]\nworkloads = [\"stat\"]\n\
             configurations = [{configurations}]\n[[configuration]]\nname = \"mine\"\nbase = \"apparmor-confined\"\n"
        );
        Study::parse("x.toml", &text).unwrap()
    }

    #[test]
    fn lists_the_packages_of_those_policies_only_that_the_study_loads() {
        let [selinux, apparmor] = [SELINUX_RECORD, APPARMOR_RECORD];
        assert!(policy_records(&study("\"none\", \"apparmor\", \"mine\"")).contains(apparmor));
        let both = "\"none\", \"selinux-permissive\", \"selinux-enforcing\", \"mine\"";
        assert_eq!(policy_records(&study(both)), BTreeSet::from([selinux, apparmor]));
    }

    #[test]
    fn leaves_out_packages_that_are_not_installed() {
        let listing = "installed e2fsprogs 1.47.0-2\nconfig-files busybox 1:1.35.0-4\nnot-installed busybox-static \n";
        assert_eq!(installed(listing), ["e2fsprogs 1.47.0-2"]);
    }

    fn environment() -> Environment {
        head(Counter::Instructions, &[boot("none", 0)]).environment
    }

    #[test]
    fn reports_each_difference_that_moves_figures() {
        let before = environment();
        let now = Environment {
            tollgate: "0.2.0".into(),
            revision: Some("0123456789ab".into()),
            qemu: Some("7.2.17".into()),
            kernels: Vec::new(),
            packages: vec!["e2fsprogs 1".into(), "busybox 1".into()],
            ..environment()
        };
        let expected = [
            "tollgate was 0.1.0 and is 0.2.0",
            "the revision was unknown and is 0123456789ab",
            "QEMU was not used and is 7.2.17",
            "the list of kernels was 6.1: linux-image-6.1-cloud-amd64 6.1.1-1 and is empty",
            "the list of packages was empty and is busybox 1, e2fsprogs 1",
        ];
        assert_eq!(differences(&before, &now, Counter::Instructions), expected);
    }

    #[test]
    fn reports_another_host_on_the_wall_clock_alone() {
        let now = Environment { cpu: "another".into(), host: "6.12".into(), ..environment() };
        assert!(differences(&environment(), &now, Counter::Instructions).is_empty());
        assert_eq!(differences(&environment(), &now, Counter::Wall).len(), 2);
    }
}
