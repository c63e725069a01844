//! A workload and the variant it is run in, written `NAME[:tmpfs|:ext4|:rootfs][:dN][:loopback|:veth]`.

use std::{fmt, str::FromStr, sync::Arc};

use crate::{
    Error,
    command_line::{self, CommandLine},
    place::{FileSystem, Network, Place},
    workload::{Group, Prepared, Scope, Workload},
    workloads::{catalogue, find},
};

/// The depth of a selection without one.
const DEFAULT_DEPTH: u8 = 3;

/// The greatest depth of a selection.
const MAX_DEPTH: u8 = 10;

/// A workload and the variant it is run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The workload of the catalogue; what all command lines have in common, if it is one.
    pub workload: &'static Workload,
    /// The command line, if it is not of the catalogue.
    pub command: Option<Arc<CommandLine>>,
    /// The file system; tmpfs by default.
    pub fs: FileSystem,
    /// Path components below the mount point, including the file's own name; 3 by default.
    pub depth: u8,
    /// The network; loopback by default.
    pub net: Network,
}

/// The suffixes of a selection; `None`: no suffix.
#[derive(Debug, Default, Clone, Copy)]
struct Variant {
    fs: Option<FileSystem>,
    depth: Option<u8>,
    net: Option<Network>,
}

impl Variant {
    /// Parses suffixes such as `ext4:d5`; the error is a reason.
    fn parse<'a>(suffixes: impl Iterator<Item = &'a str>) -> Result<Variant, String> {
        let mut variant = Variant::default();
        for suffix in suffixes {
            let again = match suffix {
                "tmpfs" => variant.fs.replace(FileSystem::Tmpfs).is_some(),
                "ext4" => variant.fs.replace(FileSystem::Ext4).is_some(),
                "rootfs" => variant.fs.replace(FileSystem::Rootfs).is_some(),
                "loopback" => variant.net.replace(Network::Loopback).is_some(),
                "veth" => variant.net.replace(Network::Veth).is_some(),
                _ => variant.depth.replace(depth(suffix)?).is_some(),
            };
            if again {
                return Err(format!("the suffix :{suffix} sets again what an earlier suffix has set; give it once"));
            }
        }
        Ok(variant)
    }

    /// The selection of this variant, or why the workload does not have it.
    fn of(self, workload: &'static Workload) -> Result<Selection, String> {
        let (fs, depth, net) = match workload.scope {
            Scope::Fixed => (false, false, false),
            Scope::File => (true, false, false),
            Scope::Path => (true, true, false),
            Scope::Network => (false, false, true),
        };
        let beyond = (self.fs.is_some() && !fs) || (self.depth.is_some() && !depth) || (self.net.is_some() && !net);
        if beyond {
            return Err(allowed(workload.scope).to_owned());
        }
        Ok(Selection {
            workload,
            command: None,
            fs: self.fs.unwrap_or_default(),
            depth: self.depth.unwrap_or(DEFAULT_DEPTH),
            net: self.net.unwrap_or_default(),
        })
    }
}

fn depth(suffix: &str) -> Result<u8, String> {
    let number = suffix.strip_prefix('d').and_then(|digits| digits.parse::<u8>().ok());
    match number {
        Some(depth) if (1..=MAX_DEPTH).contains(&depth) && suffix == format!("d{depth}") => Ok(depth),
        Some(_) => Err(format!("the depth {suffix:?} is not one of d1 to d{MAX_DEPTH}")),
        None => Err(format!(
            "there is no suffix {suffix:?}; there are tmpfs, ext4, rootfs, d1 to d{MAX_DEPTH}, loopback and veth"
        )),
    }
}

fn allowed(scope: Scope) -> &'static str {
    match scope {
        Scope::Fixed => "this workload takes no suffix",
        Scope::File => "this workload resolves no path and sends nothing: it takes tmpfs, ext4 or rootfs",
        Scope::Path => "this workload sends nothing: it takes tmpfs, ext4 or rootfs, and a depth of d1 to d10",
        Scope::Network => "this workload uses no file: it takes loopback or veth",
    }
}

impl Selection {
    /// Reads a selection of the catalogue or of these command lines.
    pub fn of(text: &str, commands: &[Arc<CommandLine>]) -> Result<Selection, Error> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let command = commands.iter().find(|command| command.name == name);
        let workload = match command {
            Some(_) => &command_line::WORKLOAD,
            None => find(name).ok_or_else(|| unknown(name, commands))?,
        };
        Variant::parse(parts)
            .and_then(|variant| variant.of(workload))
            .map(|selection| Selection { command: command.cloned(), ..selection })
            .map_err(|reason| Error::BadVariant { selection: text.to_owned(), reason })
    }

    /// The name without suffixes.
    pub fn name(&self) -> &str {
        self.command.as_ref().map_or(self.workload.name, |command| &command.name)
    }

    /// Creates what the operation needs, outside the clock.
    pub(crate) fn set_up(&self, place: &Place) -> Prepared {
        match &self.command {
            Some(command) => command.set_up(place),
            None => (self.workload.setup)(place),
        }
    }
}

impl FromStr for Selection {
    type Err = Error;

    fn from_str(text: &str) -> Result<Selection, Error> {
        Selection::of(text, &[])
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.fs != FileSystem::default() {
            write!(f, ":{}", self.fs)?;
        }
        if self.depth != DEFAULT_DEPTH {
            write!(f, ":d{}", self.depth)?;
        }
        if self.net != Network::default() {
            write!(f, ":{}", self.net.name())?;
        }
        Ok(())
    }
}

/// The families, and their groups.
const FAMILIES: [(&str, Option<Group>); 9] = [
    ("@all", None),
    ("@controls", Some(Group::Control)),
    ("@files", Some(Group::Files)),
    ("@processes", Some(Group::Processes)),
    ("@communication", Some(Group::Communication)),
    ("@flask", Some(Group::Flask)),
    ("@mls", Some(Group::Mls)),
    ("@commands", Some(Group::Commands)),
    ("@calls", Some(Group::Calls)),
];

/// The selections for a name in a study file or on a command line: one selection, or a family: `@controls`, `@files`,
/// `@processes`, `@communication`, `@all` of these, `@flask`, `@mls`, `@commands`, `@calls`. Selections may also be of these command
/// lines.
///
/// A family with suffixes has those members that have such a variant: `@communication:veth` are the workloads that send
/// packets.
pub fn expand(text: &str, commands: &[Arc<CommandLine>]) -> Result<Vec<Selection>, Error> {
    if !text.starts_with('@') {
        return Ok(vec![Selection::of(text, commands)?]);
    }
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    let (_, group) = FAMILIES.iter().find(|(family, _)| *family == name).ok_or_else(|| unknown(name, commands))?;
    let bad = |reason: String| Error::BadVariant { selection: text.to_owned(), reason };
    let variant = Variant::parse(parts).map_err(bad)?;
    let members: Vec<Selection> = catalogue()
        .into_iter()
        .filter(|workload| group.map_or(!workload.group.stands_apart(), |group| workload.group == group))
        .filter_map(|workload| variant.of(workload).ok())
        .collect();
    if members.is_empty() {
        return Err(bad(
            "no workload of this family has such a variant; `tollgate bench list` says what each takes".into()
        ));
    }
    Ok(members)
}

fn unknown(name: &str, commands: &[Arc<CommandLine>]) -> Error {
    let names = catalogue().into_iter().map(|workload| workload.name);
    let others = commands.iter().map(|command| command.name.as_str()).chain(FAMILIES.iter().map(|(family, _)| *family));
    let names: Vec<&str> = names.chain(others).collect();
    Error::UnknownWorkload { name: name.to_owned(), nearest: nearest(name, &names).map(str::to_owned) }
}

/// The candidate with the smallest edit distance, if that is at most a third of the name's length (and 1 at least).
fn nearest<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .iter()
        .map(|candidate| (strsim::levenshtein(name, candidate), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Selection {
        text.parse().unwrap()
    }

    fn error(text: &str) -> String {
        expand(text, &[]).unwrap_err().to_string()
    }

    #[test]
    fn reads_defaults_when_nothing_is_said() {
        let selection = parse("open+close");
        assert_eq!((selection.fs, selection.depth, selection.net), (FileSystem::Tmpfs, 3, Network::Loopback));
    }

    #[test]
    fn reads_suffixes_in_any_order_and_prints_them_in_one() {
        for (text, printed) in [
            ("open+close:d5:ext4", "open+close:ext4:d5"),
            ("open+close:tmpfs:d3", "open+close"),
            ("stat:rootfs:d10", "stat:rootfs:d10"),
            ("fstat:ext4", "fstat:ext4"),
            ("null", "null"),
        ] {
            assert_eq!(parse(text).to_string(), printed);
            assert_eq!(parse(printed), parse(text));
        }
    }

    #[test]
    fn rejects_a_suffix_that_does_not_apply_and_says_what_is_allowed() {
        assert!(error("null:ext4").contains("takes no suffix"));
        assert!(error("fstat:d4").contains("it takes tmpfs, ext4 or rootfs"));
        assert!(error("stat:veth").contains("a depth of d1 to d10"));
    }

    #[test]
    fn rejects_a_bad_or_repeated_suffix() {
        assert!(error("stat:xfs").contains("there is no suffix \"xfs\""));
        assert!(error("stat:").contains("there is no suffix"));
        for depth in ["d0", "d11", "d05", "d+4"] {
            assert!(error(&format!("stat:{depth}")).contains("d1 to d10"), "{depth}");
        }
        assert!(error("stat:ext4:tmpfs").contains("give it once"));
    }

    #[test]
    fn reports_the_nearest_name_only_if_it_is_near() {
        assert!(error("opne+close").contains("did you mean \"open+close\"?"));
        assert!(error("@file").contains("did you mean \"@files\"?"));
        assert!(!error("zebra-crossing").contains("did you mean"));
        assert!(!error("").contains("did you mean"));
    }

    #[test]
    fn expands_families_to_the_members_that_have_the_variant() {
        let all = expand("@all", &[]).unwrap();
        let apart = ["@flask", "@mls", "@commands", "@calls"].map(|family| expand(family, &[]).unwrap().len());
        assert_eq!(all.len() + apart.iter().sum::<usize>(), catalogue().len());
        assert!(!all.iter().any(|s| s.workload.group.stands_apart()));
        let paths = expand("@files:d5", &[]).unwrap();
        assert!(paths.iter().all(|s| s.workload.scope == Scope::Path && s.depth == 5));
        assert!(paths.iter().any(|s| s.workload.name == "stat"));
        assert!(!paths.iter().any(|s| s.workload.name == "fstat"));
        assert!(error("@controls:ext4").contains("no workload of this family"));
    }
}
