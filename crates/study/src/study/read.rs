//! Reads and checks a study file.

use std::{collections::BTreeSet, path::Path};

use tollgate_abi::HOOKS;
use tollgate_bench::counter::Counter;
use tollgate_vm::built::{self, RECIPES};

use super::{
    Figure, HOST, Latency, OwnCommand, OwnConfiguration, PrintedRow, Published, Study, StudyError,
    command::commands,
    expand::{self, Variants},
    latency::takes_delays,
    position::position,
    raw::{At, Raw, RawConfiguration, RawLatency, RawPublished, RawRow},
    wrong::{Wrong, word, wrong},
};
use crate::configuration::KNOWN;

/// Fewer rounds give no useful confidence interval.
const MIN_ROUNDS: u32 = 10;

/// The default for the least increase, in percent, that comparisons call dearer.
const DEFAULT_THRESHOLD: f64 = 1.0;

/// With more units on some hundred hooks, one system call would take seconds.
const MAX_UNITS: u32 = 100_000;

impl Study {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        let text =
            std::fs::read_to_string(path).map_err(|cause| StudyError::Unreadable { path: path.to_owned(), cause })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Reads and checks a file's text; `file` is its name in messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, StudyError> {
        let raw = toml::from_str(text).map_err(|e| Wrong(e.span().unwrap_or(0..0), e.message().to_owned()));
        raw.and_then(|raw| check(raw, text)).map_err(|Wrong(at, message)| {
            let (line, column) = position(text, at.start);
            StudyError::Wrong { file: file.to_owned(), line, column, message }
        })
    }
}

fn check(raw: Raw, text: &str) -> Result<Study, Wrong> {
    word(&raw.name, "a study's name")?;
    let kernels = distinct(&raw.kernels, "kernels")?;
    for kernel in raw.kernels.get_ref() {
        check_kernel(kernel, raw.clock)?;
    }
    let kernels_if_built = if_built(&raw.kernels_if_built, &kernels)?;
    let own: Vec<OwnConfiguration> = raw.configuration.iter().map(own_configuration).collect::<Result<_, _>>()?;
    let configurations = distinct(&raw.configurations, "configurations")?;
    check_configurations(&raw, &own)?;
    let commands = commands(&raw)?;
    let workloads = workloads(&raw, &commands)?;
    let latency = raw.latency.as_ref().map(|at| latency(at, &configurations, &own)).transpose()?;
    let published = (raw.published.into_iter())
        .map(|p| published(p, &[kernels.as_slice(), &kernels_if_built].concat(), &configurations, &workloads))
        .collect::<Result<_, _>>()?;
    let (paddings, rounds) = boots(raw.clock, raw.paddings.as_ref(), raw.rounds.as_ref())?;
    Ok(Study {
        name: raw.name.into_inner(),
        title: raw.title,
        clock: raw.clock,
        kernels,
        kernels_if_built,
        baseline: baseline(raw.baseline.as_ref(), &raw.configurations)?,
        configurations,
        own,
        workloads,
        commands,
        samples: raw.samples.map(|s| within(&s, "samples", 1, 1_000_000)).transpose()?,
        paddings,
        rounds,
        figure: figure(raw.clock, raw.figure.as_ref())?,
        threshold: threshold(raw.threshold.as_ref())?,
        latency,
        published,
        text: text.to_owned(),
    })
}

fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|known| known.name == name)
}

fn known_names() -> String {
    KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}

/// The values of a list, which must not be empty and must not repeat.
fn distinct(list: &At<Vec<At<String>>>, key: &str) -> Result<Vec<String>, Wrong> {
    if list.get_ref().is_empty() {
        return wrong(list, format!("`{key}` is empty; name at least one"));
    }
    let mut seen = BTreeSet::new();
    for at in list.get_ref() {
        if !seen.insert(at.get_ref()) {
            return wrong(at, format!("{:?} stands twice in `{key}`; leave one out", at.get_ref()));
        }
    }
    Ok(list.get_ref().iter().map(|at| at.get_ref().clone()).collect())
}

fn check_kernel(at: &At<String>, clock: Counter) -> Result<(), Wrong> {
    let kernel = at.get_ref();
    if kernel == HOST && clock == Counter::Instructions {
        return wrong(at, "the host has no instruction clock; say `clock = \"wall\"`, or name a kernel series");
    }
    let number = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_digit());
    let is_series = kernel.split_once('.').is_some_and(|(major, minor)| number(major) && number(minor));
    if is_series || built::recipe(kernel).is_some() || kernel == HOST || kernel.contains('/') {
        return Ok(());
    }
    wrong(
        at,
        format!(
            "{kernel:?} names no kernel; allowed are a series such as \"6.1\", {}, a path of an image with a `/`, and \"{HOST}\"",
            RECIPES.map(|recipe| format!("{:?}", recipe.name)).join(", ")
        ),
    )
}

/// Kernels that are measured if they have been built, without those that are measured anyway.
fn if_built(list: &[At<String>], kernels: &[String]) -> Result<Vec<String>, Wrong> {
    let mut names: Vec<String> = Vec::new();
    for at in list {
        let name = at.get_ref();
        if built::recipe(name).is_none() {
            let known = RECIPES.map(|recipe| format!("{:?}", recipe.name)).join(", ");
            return wrong(at, format!("{name:?} is no kernel that is built here; allowed are {known}"));
        }
        if kernels.contains(name) || names.contains(name) {
            return wrong(at, format!("{name:?} stands twice among the kernels; leave one out"));
        }
        names.push(name.clone());
    }
    Ok(names)
}

fn own_configuration(raw: &RawConfiguration) -> Result<OwnConfiguration, Wrong> {
    word(&raw.name, "a configuration's name")?;
    let name = raw.name.get_ref();
    if is_known(name) {
        return wrong(&raw.name, format!("{name:?} is a configuration already; give your own another name"));
    }
    if raw.lsm.is_none() && raw.base.is_none() {
        return wrong(&raw.name, format!("{name:?} says neither `lsm` nor `base`; say at least one"));
    }
    if let Some(base) = raw.base.as_ref().filter(|b| !is_known(b.get_ref())) {
        return wrong(base, format!("unknown base {:?}; allowed are {}", base.get_ref(), known_names()));
    }
    if let Some(lsm) = &raw.lsm {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-,".contains(c);
        if !lsm.get_ref().chars().all(fits) {
            return wrong(lsm, "`lsm` is a list of modules with commas and no spaces, such as \"capability,bpf\"");
        }
    }
    let base = raw.base.as_ref().map_or("none", |b| b.get_ref());
    let has_programs = ["bpf-empty", "bpf-latency"].contains(&base) || base.starts_with("tollgate-");
    if let Some(hook) = raw.hooks.first().filter(|_| !has_programs) {
        return wrong(hook, "`hooks` needs `base = \"bpf-empty\"`, `\"bpf-latency\"`, or one of Tollgate's");
    }
    raw.hooks.iter().try_for_each(check_hook)?;
    let has_levels = KNOWN.iter().any(|known| known.name == base && known.has_levels());
    if let Some(level) = raw.level.as_ref().filter(|_| !has_levels) {
        let names: Vec<&str> = KNOWN.iter().filter(|known| known.has_levels()).map(|known| known.name).collect();
        return wrong(level, format!("`level` needs as `base` one of {}", names.join(", ")));
    }
    Ok(OwnConfiguration {
        name: name.clone(),
        lsm: raw.lsm.as_ref().map(|lsm| lsm.get_ref().clone()),
        base: base.to_owned(),
        hooks: raw.hooks.iter().map(|h| h.get_ref().clone()).collect(),
        level: raw.level.as_ref().map(|level| level.get_ref().clone()),
        command_line: raw.command_line.clone(),
    })
}

fn check_hook(at: &At<String>) -> Result<(), Wrong> {
    if HOOKS.iter().any(|known| known.name == at.get_ref()) {
        return Ok(());
    }
    wrong(at, format!("{:?} is no hook that a BPF program can attach to; names are those of lsm_hooks.h", at.get_ref()))
}

/// An experiment needs a configuration whose hooks can be delayed.
fn latency(at: &At<RawLatency>, configurations: &[String], own: &[OwnConfiguration]) -> Result<Latency, Wrong> {
    let raw = at.get_ref();
    if !configurations.iter().any(|name| takes_delays(own, name)) {
        return wrong(
            at,
            "`[latency]` delays the hooks of \"bpf-latency\" or \"latency\"; add one of them to `configurations`",
        );
    }
    raw.hooks.iter().try_for_each(check_hook)?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = raw.hooks.iter().find(|hook| !seen.insert(hook.get_ref())) {
        return wrong(twice, format!("{:?} stands twice in `hooks`; leave one out", twice.get_ref()));
    }
    let number = |at: Option<&At<i64>>, what: &str, least, most, otherwise| {
        at.map_or(Ok(otherwise), |at| within(at, what, least, most))
    };
    Ok(Latency {
        hooks: raw.hooks.iter().map(|hook| hook.get_ref().clone()).collect(),
        units: number(raw.units.as_ref(), "`units`", 2, MAX_UNITS, 100)?.into(),
        centres: number(raw.centre_points.as_ref(), "`centre-points`", 0, 100, 3)?,
        folded: raw.folded.unwrap_or(true),
        seed: number(raw.seed.as_ref(), "`seed`", 0, u32::MAX, 1)?.into(),
    })
}

fn check_configurations(raw: &Raw, own: &[OwnConfiguration]) -> Result<(), Wrong> {
    for at in raw.configurations.get_ref() {
        let name = at.get_ref();
        if !is_known(name) && !own.iter().any(|o| o.name == *name) {
            let known = known_names();
            return wrong(
                at,
                format!(
                    "unknown configuration {name:?}; allowed are {known}, and those of a `[[configuration]]` in this file"
                ),
            );
        }
    }
    for (i, table) in raw.configuration.iter().enumerate() {
        let name = table.name.get_ref();
        if own[..i].iter().any(|o| o.name == *name) {
            return wrong(&table.name, format!("{name:?} is defined twice; leave one out"));
        }
        if !raw.configurations.get_ref().iter().any(|c| c.get_ref() == name) {
            return wrong(&table.name, format!("{name:?} is defined but not measured; add it to `configurations`"));
        }
    }
    Ok(())
}

fn baseline(baseline: Option<&At<String>>, configurations: &At<Vec<At<String>>>) -> Result<String, Wrong> {
    let name = baseline.map_or("none", |b| b.get_ref());
    if configurations.get_ref().iter().any(|c| c.get_ref() == name) {
        return Ok(name.to_owned());
    }
    let message =
        format!("the baseline {name:?} is not measured; add it to `configurations`, or name another as `baseline`");
    baseline.map_or_else(|| wrong(configurations, &message), |at| wrong(at, &message))
}

/// The selections, each once, because families may overlap.
fn workloads(raw: &Raw, commands: &[OwnCommand]) -> Result<Vec<String>, Wrong> {
    distinct(&raw.workloads, "workloads")?;
    let variants = Variants {
        filesystems: each(&raw.filesystems, "file system", "tmpfs, ext4 and rootfs", expand::filesystem)?,
        depths: raw.depths.iter().map(|d| within(d, "a depth", 1, 10).map(|d| d as u8)).collect::<Result<_, _>>()?,
        networks: each(&raw.networks, "network", "loopback and veth", expand::network)?,
    };
    let commands: Vec<_> = commands.iter().map(|command| command.line.clone()).collect();
    let mut names: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for entry in raw.workloads.get_ref() {
        let selections = expand::expand(entry.get_ref(), &variants, &commands).or_else(|e| {
            let list = " (`tollgate bench list` prints all)";
            wrong(entry, format!("{e}{list}"))
        })?;
        names.extend(selections.iter().map(ToString::to_string).filter(|name| seen.insert(name.clone())));
    }
    Ok(names)
}

fn each<T>(list: &[At<String>], what: &str, allowed: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Wrong> {
    list.iter()
        .map(|at| match read(at.get_ref()) {
            Some(value) => Ok(value),
            None => wrong(at, format!("unknown {what} {:?}; allowed are {allowed}", at.get_ref())),
        })
        .collect()
}

fn within(at: &At<i64>, what: &str, least: u32, most: u32) -> Result<u32, Wrong> {
    match u32::try_from(*at.get_ref()) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => wrong(at, format!("{what} must be a number from {least} to {most}")),
    }
}

/// Paddings belong to the instruction clock, rounds to the wall clock.
fn boots(clock: Counter, paddings: Option<&At<i64>>, rounds: Option<&At<i64>>) -> Result<(u32, u32), Wrong> {
    match (clock, paddings, rounds) {
        (Counter::Instructions, _, Some(at)) => {
            wrong(at, "`rounds` is of the wall clock; leave it out, or say `clock = \"wall\"`")
        }
        (Counter::Wall, Some(at), _) => {
            wrong(at, "`paddings` is of the instruction clock; leave it out, or say `clock = \"instructions\"`")
        }
        (Counter::Instructions, paddings, None) => {
            Ok((paddings.map_or(Ok(1), |at| within(at, "`paddings`", 1, 100))?, 1))
        }
        (Counter::Wall, None, rounds) => {
            Ok((1, rounds.map_or(Ok(MIN_ROUNDS), |at| within(at, "`rounds`", MIN_ROUNDS, 10_000))?))
        }
    }
}

/// Wall time has no useful minimum: there the figure is the median over rounds.
fn figure(clock: Counter, figure: Option<&At<Figure>>) -> Result<Figure, Wrong> {
    match (clock, figure) {
        (Counter::Wall, Some(at)) => {
            wrong(at, "`figure` is of the instruction clock; leave it out, or say `clock = \"instructions\"`")
        }
        (_, figure) => Ok(figure.map(|at| *at.get_ref()).unwrap_or_default()),
    }
}

fn threshold(threshold: Option<&At<f64>>) -> Result<f64, Wrong> {
    match threshold {
        None => Ok(DEFAULT_THRESHOLD),
        Some(at) if at.get_ref().is_finite() && *at.get_ref() >= 0.0 => Ok(*at.get_ref()),
        Some(at) => wrong(at, "`threshold` must be a percentage of 0 or more"),
    }
}

fn published(
    raw: RawPublished,
    kernels: &[String],
    configurations: &[String],
    workloads: &[String],
) -> Result<Published, Wrong> {
    raw.kernel.as_ref().map_or(Ok(()), |kernel| known(kernel, kernels, "kernels"))?;
    for workload in raw.baseline.keys().chain(raw.percent.keys()) {
        known(workload, workloads, "workloads")?;
    }
    for configuration in raw.percent.values().flat_map(|row| row.keys()) {
        known(configuration, configurations, "configurations")?;
    }
    let row = |(name, percent): (At<String>, f64)| (name.into_inner(), percent);
    Ok(Published {
        source: raw.source,
        kernel: raw.kernel.map(At::into_inner),
        baseline: raw.baseline.into_iter().map(row).collect(),
        percent: raw.percent.into_iter().map(|(w, r)| (w.into_inner(), r.into_iter().map(row).collect())).collect(),
        rows: raw.row.into_iter().map(|row| printed(row, configurations, workloads)).collect::<Result<_, _>>()?,
    })
}

fn printed(raw: RawRow, configurations: &[String], workloads: &[String]) -> Result<PrintedRow, Wrong> {
    let unit = raw.unit.get_ref();
    if !["s", "%"].contains(&unit.as_str()) && !unit.ends_with("/s") {
        return wrong(
            &raw.unit,
            format!(
                "{unit:?} does not say whether more is longer; allowed are \"s\", \"%\" and rates such as \"MB/s\""
            ),
        );
    }
    raw.figures.keys().try_for_each(|name| known(name, configurations, "configurations"))?;
    raw.workloads.iter().try_for_each(|name| known(name, workloads, "workloads"))?;
    Ok(PrintedRow {
        test: raw.test,
        unit: raw.unit.into_inner(),
        figures: raw.figures.into_iter().map(|(name, figure)| (name.into_inner(), figure)).collect(),
        workloads: raw.workloads.into_iter().map(At::into_inner).collect(),
        same: raw.same,
        scaled: raw.scaled,
        unsaid: raw.unsaid,
    })
}

/// A published figure is useful only beside one that the study measures.
fn known(at: &At<String>, measured: &[String], key: &str) -> Result<(), Wrong> {
    if measured.contains(at.get_ref()) {
        return Ok(());
    }
    wrong(at, format!("{:?} is not among this study's `{key}`, which are {}", at.get_ref(), measured.join(", ")))
}
