//! What enforcement needs of the machine. It is checked before anything is done, so that an error says what is missing.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use nix::{
    mount::{MsFlags, mount},
    sys::statfs::{BPF_FS_MAGIC, statfs},
    unistd::geteuid,
};

use crate::programs::{self, Pinned, Pins, ProgramsError};

/// What is missing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unmet {
    /// The user is not root.
    #[error("only root may change what is enforced: run it with sudo")]
    NotRoot,
    /// The kernel lacks what the programs use.
    #[error(
        "Linux {release} is too old to enforce: BPF LSM came with 5.7, and what the programs call (bpf_loop) with 5.17; boot a \
         newer kernel, 6.1 or later by preference"
    )]
    TooOld {
        /// Release of the kernel.
        release: String,
    },
    /// The kernel runs without BPF LSM.
    #[error(
        "this kernel runs without the security module bpf: add lsm={wanted} to its command line (Debian: \
         GRUB_CMDLINE_LINUX in /etc/default/grub, then `update-grub`) and start the machine again; it runs {present} now"
    )]
    NoBpf {
        /// The security modules that run.
        present: String,
        /// The security modules that should run.
        wanted: String,
    },
    /// The list of security modules cannot be read.
    #[error("cannot read which security modules run, {}: {cause}: mount securityfs on /sys/kernel/security", .path.display())]
    NoList {
        /// Path of the list.
        path: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// The kernel does not publish its types.
    #[error(
        "this kernel does not publish its types ({} does not exist): boot one with CONFIG_DEBUG_INFO_BTF, such as Debian's",
        .0.display()
    )]
    NoTypes(PathBuf),
    /// There is no BPF file system.
    #[error("{} is not a BPF file system, and none can be mounted there ({cause}): mount -t bpf bpf {}", .path.display(), .path.display())]
    NoBpfFs {
        /// Where it should be mounted.
        path: PathBuf,
        /// What mount(2) returned.
        cause: io::Error,
    },
    /// Labels of tasks are not reliable.
    #[error(
        "this kernel loses labels of tasks where it is preemptible (Linux before 6.2 with preempt=full): take preempt=full \
         from its command line, or use a newer kernel"
    )]
    Preemptible,
    /// There are foreign pins among Tollgate's.
    #[error("{} is none of Tollgate's pins: move it away, or end enforcement with `tollgate stop --force`", .0.display())]
    Foreign(PathBuf),
    /// Some of Tollgate's pins do not exist.
    #[error("{} is missing, so enforcement is incomplete: end it with `tollgate stop --force`, then start it again", .0.display())]
    Missing(PathBuf),
    /// The pins cannot be read.
    #[error("cannot read the pins in {}: {cause}", .path.display())]
    Unreadable {
        /// Path of the directory.
        path: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// It is not known which pins should exist.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
}

/// Where the machine describes itself. Tests use other paths.
#[derive(Debug, Clone)]
pub struct Places {
    /// List of the security modules that run.
    pub modules: PathBuf,
    /// The kernel's types.
    pub types: PathBuf,
    /// The BPF file system.
    pub bpf: PathBuf,
    /// The kernel's release.
    pub release: PathBuf,
    /// The kernel's command line.
    pub command_line: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            modules: "/sys/kernel/security/lsm".into(),
            types: "/sys/kernel/btf/vmlinux".into(),
            bpf: "/sys/fs/bpf".into(),
            release: "/proc/sys/kernel/osrelease".into(),
            command_line: "/proc/cmdline".into(),
        }
    }
}

/// Checks that this process may change what is enforced.
pub fn root() -> Result<(), Unmet> {
    if geteuid().is_root() { Ok(()) } else { Err(Unmet::NotRoot) }
}

/// Checks that the kernel can enforce. The BPF file system is mounted if necessary.
pub fn kernel(places: &Places) -> Result<(), Unmet> {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let release = read(&places.release);
    if version(&release).is_some_and(|version| version < OLDEST) {
        return Err(Unmet::TooOld { release: release.trim().to_owned() });
    }
    let modules = fs::read_to_string(&places.modules);
    bpf_is_in(&modules.map_err(|cause| Unmet::NoList { path: places.modules.clone(), cause })?)?;
    if !places.types.exists() {
        return Err(Unmet::NoTypes(places.types.clone()));
    }
    if loses_labels(&release, &read(&places.command_line)) {
        return Err(Unmet::Preemptible);
    }
    let is_mounted = statfs(&places.bpf).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC);
    if is_mounted {
        return Ok(());
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let mounted = mount(Some("bpf"), &places.bpf, Some("bpf"), flags, Some("mode=0755"));
    mounted.map_err(|cause| Unmet::NoBpfFs { path: places.bpf.clone(), cause: cause.into() })
}

/// Checks that `bpf` is among the modules of `/sys/kernel/security/lsm`.
fn bpf_is_in(modules: &str) -> Result<(), Unmet> {
    let modules = modules.trim();
    if modules.split(',').any(|module| module == "bpf") {
        return Ok(());
    }
    // The kernel itself adds capability, in first place.
    let named: Vec<&str> = modules.split(',').filter(|module| !matches!(*module, "capability" | "")).collect();
    let wanted = [&named[..], &["bpf"]].concat().join(",");
    Err(Unmet::NoBpf { present: modules.to_owned(), wanted })
}

/// The first kernel whose programs have `bpf_loop` and `bpf_get_func_arg`.
const OLDEST: (u32, u32) = (5, 17);

/// The first two numbers of a release; `None`: it does not begin with them.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Before Linux 6.2, the storage of a task may not be found while another task accesses storage on the same processor.
/// This happens only on a preemptible kernel.
fn loses_labels(release: &str, command_line: &str) -> bool {
    version(release).unwrap_or_default() < (6, 2)
        && command_line.split_ascii_whitespace().any(|word| word == "preempt=full")
}

/// Checks the pins. `true`: they are complete. `false`: there are none, or they were left by a start that was killed
/// before it enforced anything.
pub fn pins(pins: &Pins) -> Result<bool, Unmet> {
    programs::of_this_build(pins)?;
    if programs::left_by_another_build(pins) {
        return Ok(false);
    }
    whole(pins.root(), &programs::pins_of_all()?)
}

/// The pins by which programs are attached. Without them nothing is enforced.
const LINKS: &str = "links";

fn whole(root: &Path, expected: &[Pinned]) -> Result<bool, Unmet> {
    let found = names(root)?;
    if let Some(foreign) = found.iter().find(|name| !expected.iter().any(|own| own.directory == *name)) {
        return Err(Unmet::Foreign(root.join(foreign)));
    }
    for own in expected {
        let path = root.join(own.directory);
        if let Some(foreign) = names(&path)?.iter().find(|name| !own.all.contains(name) && !own.some.contains(name)) {
            return Err(Unmet::Foreign(path.join(foreign)));
        }
    }
    if names(&root.join(LINKS))?.is_empty() {
        return Ok(false);
    }
    for own in expected {
        let path = root.join(own.directory);
        let found = names(&path)?;
        if let Some(missing) = own.all.iter().find(|name| !found.contains(*name)) {
            return Err(Unmet::Missing(path.join(missing)));
        }
    }
    Ok(true)
}

/// The names in a directory; none if it does not exist.
fn names(path: &Path) -> Result<BTreeSet<String>, Unmet> {
    let error = |cause| Unmet::Unreadable { path: path.to_owned(), cause };
    let entries = match fs::read_dir(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        other => other.map_err(error)?,
    };
    entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()).map_err(error)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_to_put_on_the_command_line() {
        assert!(bpf_is_in("lockdown,capability,landlock,yama,bpf\n").is_ok());
        let text = |modules| bpf_is_in(modules).unwrap_err().to_string();
        assert!(text("lockdown,capability,yama,apparmor\n").contains("add lsm=lockdown,yama,apparmor,bpf to its"));
        assert!(text("capability").contains("add lsm=bpf to its"));
        // Another module whose name begins so is not it.
        assert!(text("capability,bpfx").contains("add lsm=bpfx,bpf to its"));
    }

    #[test]
    fn refuses_old_kernels_that_are_preemptible() {
        assert!(loses_labels("6.1.0-56-cloud-amd64\n", "quiet preempt=full\n"));
        assert!(loses_labels("5.10.0", "preempt=full"));
        assert!(!loses_labels("6.1.0-56-cloud-amd64\n", "quiet preempt=voluntary"));
        assert!(!loses_labels("6.18.15+deb13-cloud-amd64", "preempt=full"));
    }

    /// Whatever else it lacks: no module in `lsm=` makes it newer.
    #[test]
    fn refuses_kernels_older_than_what_programs_call() {
        let folder = tempfile::tempdir().unwrap();
        let places =
            Places { release: folder.path().join("osrelease"), modules: folder.path().into(), ..Places::default() };
        let text = |release: &str| {
            fs::write(&places.release, release).unwrap();
            kernel(&places).unwrap_err().to_string()
        };
        for release in ["5.10.0-46-cloud-amd64\n", "5.4.0\n", "4.19.0-27-amd64\n", "5.16.12\n"] {
            let text = text(release);
            assert!(
                text.starts_with(&format!("Linux {} is too old", release.trim())) && text.contains("6.1"),
                "{text}"
            );
        }
        for release in ["5.17.0-1-amd64\n", "6.1.0-56-cloud-amd64\n", "10.0\n", "none"] {
            assert!(text(release).contains("mount securityfs"), "{release}");
        }
    }

    #[test]
    fn names_the_file_that_a_machine_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let mut places =
            Places { modules: path("lsm"), types: path("btf"), release: path("osrelease"), ..Places::default() };
        assert!(kernel(&places).unwrap_err().to_string().contains("mount securityfs"));
        fs::write(path("lsm"), "capability,bpf").unwrap();
        assert!(kernel(&places).unwrap_err().to_string().contains("CONFIG_DEBUG_INFO_BTF"));
        fs::write(path("btf"), "").unwrap();
        places.bpf = path("none");
        assert!(kernel(&places).unwrap_err().to_string().contains("mount -t bpf bpf"));
    }

    #[test]
    fn tells_whole_pins_from_none_from_half_of_them_and_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let expected = [
            Pinned { directory: "maps", all: names(&["a", "b"]), some: names(&["maybe"]) },
            Pinned { directory: "inquiries", all: names(&["check"]), ..Pinned::default() },
            Pinned { directory: "links", some: names(&["file_open", "x"]), ..Pinned::default() },
        ];
        let verdict = || whole(folder.path(), &expected).map_err(|unmet| unmet.to_string());
        let make = |name: &str| fs::write(folder.path().join(name), "").unwrap();
        assert_eq!(verdict(), Ok(false));
        for directory in ["maps", "inquiries", "links"] {
            fs::create_dir(folder.path().join(directory)).unwrap();
        }
        assert_eq!(verdict(), Ok(false));
        // Of a start that was killed before it attached the first program.
        make("maps/a");
        assert_eq!(verdict(), Ok(false));
        make("links/file_open");
        assert!(verdict().unwrap_err().contains("maps/b is missing"));
        make("maps/b");
        assert!(verdict().unwrap_err().contains("inquiries/check is missing"));
        make("inquiries/check");
        assert_eq!(verdict(), Ok(true));
        make("maps/maybe");
        assert_eq!(verdict(), Ok(true));
        make("maps/c");
        assert!(verdict().unwrap_err().contains("maps/c is none of Tollgate's"));
        fs::remove_file(folder.path().join("maps/c")).unwrap();
        make("other");
        assert!(verdict().unwrap_err().contains("other is none of Tollgate's"));
        fs::remove_file(folder.path().join("other")).unwrap();
        fs::remove_file(folder.path().join("links/file_open")).unwrap();
        assert_eq!(verdict(), Ok(false));
    }

    #[test]
    fn refuses_the_pins_of_another_build_and_takes_what_that_has_left_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let own = Pins::below(folder.path());
        let make = |name: &str| fs::create_dir_all(folder.path().join(name)).unwrap();
        make("build/0123456789abcdef");
        make("maps/of_then");
        make("links");
        assert!(matches!(pins(&own), Ok(false)));
        make("links/file_open");
        let told = pins(&own).unwrap_err().to_string();
        assert!(told.contains("another version") && told.contains("tollgate stop --force"), "{told}");
        // Nor are those that do not say of which build they are.
        fs::remove_dir_all(folder.path().join("build")).unwrap();
        assert!(pins(&own).unwrap_err().to_string().contains("another version"));
        fs::remove_dir(folder.path().join("links/file_open")).unwrap();
        assert!(pins(&own).unwrap_err().to_string().contains("of_then is none of Tollgate's"));
    }

    #[test]
    fn knows_the_pins_of_its_own_programs() {
        let all = programs::pins_of_all().unwrap();
        let has = |directory: &str, name: &str| {
            let own = all.iter().filter(|own| own.directory == directory);
            own.flat_map(|own| own.all.iter().chain(&own.some)).any(|own| own == name)
        };
        assert!(has("maps", "tasks") && has("maps", "bss") && has("inquiries", "check") && has("links", "task_prctl"));
        assert!(has("maps", "packets") && has("datapath", "egress_ether") && has("datapath", "links"));
        assert!(!has("links", "check") && !has("links", "egress_ether"));
    }
}
