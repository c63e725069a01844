//! `tollgate hooks graph`: the call graph of a kernel's image, and the hooks that system calls reach in it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_callgraph::{Comparison, Graph, Image, Report, Search, StopList, Symbols, picture};
use tollgate_host::Cache;
use tollgate_vm::kernels;

use super::text;
use crate::{interrupt, output};

/// The largest vmlinux, in bytes; one with all its debug data has 600 MB.
const MAX_VMLINUX_SIZE: u64 = 4 << 30;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The kernel: series (6.1), release, or path of a bzImage or a vmlinux
    kernel: String,
    /// Print the differences to this second kernel
    #[arg(long, value_name = "KERNEL", conflicts_with_all = ["syscall", "svg"])]
    against: Option<String>,
    /// Print only this system call, and for each hook a path that leads to it
    #[arg(long, value_name = "NAME")]
    syscall: Option<String>,
    /// List the kernel's hooks, with the functions that call them and how many system calls reach each
    #[arg(long, conflicts_with_all = ["against", "syscall", "svg"])]
    list: bool,
    /// Follow direct calls only, no pointers to functions
    #[arg(long)]
    direct: bool,
    /// Functions at which the search stops, instead of those of `tollgate hooks stop-list`
    #[arg(long, value_name = "FILE")]
    stop: Option<PathBuf>,
    /// Do not stop at any function
    #[arg(long, conflicts_with = "stop")]
    no_stop: bool,
    /// Read the kernel's symbols from a System.map, or from /proc/kallsyms of a boot with nokaslr
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    symbols: Option<PathBuf>,
    /// Count the lines below security/ in this unpacked source (linux-source-VERSION) of the kernel
    #[arg(long, value_name = "FOLDER")]
    source: Option<PathBuf>,
    /// The same for the second kernel
    #[arg(long, value_name = "FOLDER", requires = "against")]
    against_source: Option<PathBuf>,
    /// Draw the graph into this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_list(arguments)?;
    let (kernel, graph) = read(&arguments.kernel, arguments.symbols.as_deref())?;
    let search = Search::new(&graph, &stop, arguments.direct);
    if let Some(name) = &arguments.syscall {
        let reach = search.of(name)?;
        draw(arguments, || picture::syscall(&kernel, &reach))?;
        if arguments.json {
            output::json(&reach)?
        } else {
            output::write(&text::syscall(&kernel, &reach))?
        }
        return Ok(ExitCode::SUCCESS);
    }
    let report = Report { lines: lines(arguments.source.as_deref())?, ..Report::new(&kernel, &graph, search.all()) };
    if let Some(second) = &arguments.against {
        let (kernel, graph) = read(second, None)?;
        let second = Report::new(&kernel, &graph, Search::new(&graph, &stop, arguments.direct).all());
        let second = Report { lines: lines(arguments.against_source.as_deref())?, ..second };
        let comparison = Comparison::new(&report, &second);
        if arguments.json {
            output::json(&comparison)?
        } else {
            output::write(&text::comparison(&comparison))?
        }
        let same = comparison.come.is_empty() && comparison.gone.is_empty() && comparison.moved.is_empty();
        return Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(1) });
    }
    draw(arguments, || picture::summary(&report))?;
    match (arguments.json, arguments.list) {
        (true, _) => output::json(&report)?,
        (false, true) => output::write(&text::hooks(&report))?,
        (false, false) => output::write(&text::report(&report))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn draw(arguments: &Arguments, picture: impl FnOnce() -> String) -> anyhow::Result<()> {
    match &arguments.svg {
        Some(file) => fs::write(file, picture()).with_context(|| format!("cannot write {}", file.display())),
        None => Ok(()),
    }
}

fn stop_list(arguments: &Arguments) -> anyhow::Result<StopList> {
    let list = match &arguments.stop {
        Some(file) => {
            let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            StopList::parse(&text).with_context(|| file.display().to_string())?
        }
        None => StopList::own(),
    };
    Ok(if arguments.no_stop { list.without_stops() } else { list })
}

/// Reads a kernel by its name or path: its release, and its graph.
fn read(spec: &str, symbols: Option<&Path>) -> anyhow::Result<(String, Graph)> {
    let (name, file) = if spec.contains('/') || Path::new(spec).is_file() {
        (spec.to_string(), PathBuf::from(spec))
    } else {
        let cache = Cache::of_user()?.interruptible(interrupt::flag()?);
        let kernel = kernels::find(&cache, spec)?;
        (kernel.release, kernel.image)
    };
    let size = fs::metadata(&file).with_context(|| format!("cannot open the kernel {}", file.display()))?.len();
    if size > MAX_VMLINUX_SIZE {
        bail!("{} is no kernel image: it has {} GB", file.display(), size >> 30);
    }
    let bytes = fs::read(&file).with_context(|| format!("cannot read the kernel {}", file.display()))?;
    let graph = graph_of(bytes, &file, symbols).with_context(|| file.display().to_string())?;
    Ok((name, graph))
}

fn graph_of(bytes: Vec<u8>, file: &Path, map: Option<&Path>) -> anyhow::Result<Graph> {
    let image = Image::parse(bytes)?;
    let symbols = match map {
        Some(map) => {
            let text = fs::read_to_string(map).with_context(|| format!("cannot read {}", map.display()))?;
            Symbols::of_map(&image, &text).with_context(|| map.display().to_string())?
        }
        None => Symbols::of(&image, beside(file).as_deref())?,
    };
    Ok(Graph::of(&image, &symbols)?)
}

/// The System.map beside an image. Debian's is a stub of one line, which does not count.
fn beside(image: &Path) -> Option<String> {
    let name = image.file_name()?.to_str()?;
    let release = name.strip_prefix("vmlinuz").or_else(|| name.strip_prefix("vmlinux"))?;
    fs::read_to_string(image.with_file_name(format!("System.map{release}"))).ok()
}

/// Counts the lines of C below security/.
fn lines(source: Option<&Path>) -> anyhow::Result<Option<u64>> {
    let Some(source) = source else { return Ok(None) };
    let folder = source.join("security");
    let lines = count(&folder).with_context(|| {
        format!("cannot read {} (give the folder that linux-source unpacks to, with security/ in it)", folder.display())
    })?;
    Ok(Some(lines))
}

fn count(folder: &Path) -> io::Result<u64> {
    let mut lines = 0;
    for entry in fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        if kind.is_dir() {
            lines += count(&path)?;
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "c" || end == "h") {
            lines += fs::read(&path)?.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
    }
    Ok(lines)
}
