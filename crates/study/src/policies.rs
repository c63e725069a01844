//! What the modules under test load, built from Debian's packages and kept in the cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tollgate_vm::{Cache, Package, Packages, process};

/// The suite whose policy and tools are used: one for all kernels, so that kernels can be compared.
const SUITE: &str = "bookworm";
const SELINUX_POLICY: &str = "selinux-policy-default";
/// Tools and the libraries they load, unpacked and run in place.
const SELINUX_TOOLS: [&str; 6] = ["policycoreutils", "secilc", "libsepol2", "libselinux1", "libaudit1", "libsemanage2"];
/// The newest binary policy version that every kernel since 5.10 reads (security/selinux/include/security.h).
const POLICY_VERSION: &str = "33";

/// Where the cache records the packages that each of these was built from.
pub const RECORDS: [&str; 2] = ["selinux/default-bookworm/packages.json", "apparmor/bookworm/packages.json"];

/// Why a policy could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A package could not be had, or the cache could not be written.
    #[error(transparent)]
    Packages(#[from] tollgate_vm::Error),
    /// A tool of the packages failed.
    #[error("{program} failed on {input}: {detail}")]
    Tool {
        /// The tool.
        program: String,
        /// What it was given.
        input: String,
        /// What it said.
        detail: String,
    },
    /// A file could not be read or written.
    #[error("{what}: {cause}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        cause: std::io::Error,
    },
}

/// A program that is unpacked, not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The program.
    pub program: PathBuf,
    /// Folders that hold its libraries.
    pub libraries: Vec<PathBuf>,
}

/// Debian's SELinux policy with every module that its package ships, as one binary policy.
///
/// Each module package is turned into CIL by the high-level language compiler of policycoreutils, and all of them are
/// compiled by secilc, as semodule would do on an installed system.
pub fn selinux(cache: &Cache) -> Result<PathBuf, PolicyError> {
    let folder = cache.folder(&format!("selinux/default-{SUITE}"), |fresh| {
        let root = fresh.join("root");
        make(&root)?;
        let mut packages: Vec<String> = vec![format!("{SELINUX_POLICY}/{SUITE}")];
        packages.extend(SELINUX_TOOLS.iter().map(|name| format!("{name}/{SUITE}")));
        let names: Vec<&str> = packages.iter().map(String::as_str).collect();
        let fetched = Packages::new(cache).unpack(&names, &root)?;
        let cil = fresh.join("cil");
        make(&cil)?;
        let sources = modules_to_cil(cache, &root, &cil)?;
        let mut secilc = tool(&root, "usr/bin/secilc");
        secilc.args(["-c", POLICY_VERSION, "-M", "true", "-o"]).arg(fresh.join("policy"));
        secilc.arg("-f").arg(fresh.join("file_contexts")).args(sources);
        run(cache, &mut secilc, &cil)?;
        write_record(fresh, &fetched)?;
        // What it was built from is two hundred times its size.
        fs::remove_dir_all(&cil).and_then(|()| fs::remove_dir_all(&root)).map_err(io("tidy up"))
    })?;
    Ok(folder.join("policy"))
}

/// Debian's AppArmor parser.
pub fn apparmor_parser(cache: &Cache) -> Result<Unpacked, PolicyError> {
    let folder = cache.folder(&format!("apparmor/{SUITE}"), |fresh| -> Result<(), PolicyError> {
        let fetched = Packages::new(cache).unpack(&[&format!("apparmor/{SUITE}")], fresh)?;
        write_record(fresh, &fetched)
    })?;
    let program = ["usr/sbin/apparmor_parser", "sbin/apparmor_parser"].map(|path| folder.join(path));
    let program = program.into_iter().find(|path| path.exists()).unwrap_or_else(|| folder.join("sbin"));
    Ok(Unpacked { program, libraries: library_folders(&folder) })
}

/// Turns every `*.pp.bz2` of the policy package into CIL, on all processors; the CIL files in the package's order.
fn modules_to_cil(cache: &Cache, root: &Path, into: &Path) -> Result<Vec<PathBuf>, PolicyError> {
    let folder = root.join("usr/share/selinux/default");
    let entries = fs::read_dir(&folder).map_err(io(format!("list {}", folder.display())))?;
    let mut modules: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|e| e.path())).collect();
    modules.retain(|path| path.to_string_lossy().ends_with(".pp.bz2"));
    modules.sort();
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(module) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(e) = module_to_cil(cache, root, module, &cil_name(into, module)) {
                        failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(e);
                        break;
                    }
                }
            });
        }
    });
    match failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(modules.iter().map(|module| cil_name(into, module)).collect()),
    }
}

fn cil_name(into: &Path, module: &Path) -> PathBuf {
    let name = module.file_name().unwrap_or_default().to_string_lossy().replace(".pp.bz2", ".cil");
    into.join(name)
}

fn module_to_cil(cache: &Cache, root: &Path, module: &Path, cil: &Path) -> Result<(), PolicyError> {
    let unpacked = run(cache, Command::new("bzip2").arg("-dc").arg(module), module)?.stdout;
    let package = cil.with_extension("pp");
    fs::write(&package, unpacked).map_err(io(format!("write {}", package.display())))?;
    run(cache, tool(root, "usr/libexec/selinux/hll/pp").arg(&package).arg(cil), module)?;
    fs::remove_file(&package).map_err(io(format!("remove {}", package.display())))
}

/// A program of unpacked packages, with the libraries beside it.
fn tool(root: &Path, program: &str) -> Command {
    let mut command = Command::new(root.join(program));
    command.env("LD_LIBRARY_PATH", std::env::join_paths(library_folders(root)).unwrap_or_default());
    command
}

fn library_folders(root: &Path) -> Vec<PathBuf> {
    ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|folder| root.join(folder)).to_vec()
}

fn run(cache: &Cache, command: &mut Command, input: &Path) -> Result<Output, PolicyError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed =
        |detail: String| PolicyError::Tool { program: program.clone(), input: input.display().to_string(), detail };
    let output = process::output(command, cache.limits())?;
    if output.status.success() {
        return Ok(output);
    }
    Err(failed(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())))
}

fn write_record(folder: &Path, packages: &[Package]) -> Result<(), PolicyError> {
    let text = serde_json::to_vec_pretty(packages).map_err(std::io::Error::from);
    text.and_then(|text| fs::write(folder.join("packages.json"), text)).map_err(io("write the record"))
}

fn make(folder: &Path) -> Result<(), PolicyError> {
    fs::create_dir_all(folder).map_err(io(format!("make {}", folder.display())))
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> PolicyError {
    let what = what.into();
    move |cause| PolicyError::Io { what, cause }
}
