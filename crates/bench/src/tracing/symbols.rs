//! The running kernel's functions, by their addresses.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
};

use super::names::{hook_of, known};
use crate::{Error, error::Context};

const FILE: &str = "/proc/kallsyms";
/// The prefix of the functions to which BPF LSM attaches: `bpf_lsm_` and the hook.
const HOOKS: &str = "bpf_lsm_";

/// Functions by address.
#[derive(Debug, Default)]
pub struct Symbols {
    sorted: Vec<(u64, String)>,
    /// Addresses that were looked up.
    found: HashMap<u64, usize>,
    hooks: BTreeSet<String>,
}

impl Symbols {
    /// Reads the kernel's list of symbols.
    pub(super) fn read() -> Result<Self, Error> {
        let symbols = Self::parse(&fs::read_to_string(FILE).context(format!("read {FILE}"))?);
        if symbols.sorted.is_empty() {
            let why = "the kernel shows no addresses: run it as root, and not with sysctl kernel.kptr_restrict=2";
            return Err(Error::Unavailable(why.to_owned()));
        }
        Ok(symbols)
    }

    /// The functions in lines of the kernel's list.
    pub fn parse(text: &str) -> Self {
        let functions = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
            let kind = words.next()?;
            ["t", "T", "w", "W"].contains(&kind).then_some(())?;
            Some((address, words.next()?.to_owned()))
        });
        let mut sorted: Vec<_> = functions.collect();
        // Sorted, so that the result is the same if a function has several names.
        sorted.sort();
        let hooks = sorted.iter().filter_map(|(_, name)| name.strip_prefix(HOOKS)).map(str::to_owned).collect();
        Self { sorted, found: HashMap::new(), hooks }
    }

    /// The first address and the whole name of the function that contains an address.
    pub fn function(&self, address: u64) -> Option<(u64, &str)> {
        let index = self.sorted.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        self.sorted.get(index).map(|(start, name)| (*start, name.as_str()))
    }

    /// The function that contains an address, without suffixes of the compiler (`link_path_walk.part.0.constprop.0`).
    pub(super) fn name(&mut self, address: u64) -> &str {
        let sorted = &self.sorted;
        let index =
            *self.found.entry(address).or_insert_with(|| sorted.partition_point(|(start, _)| *start <= address));
        let name = index.checked_sub(1).map_or("?", |index| self.sorted[index].1.as_str());
        name.split('.').next().unwrap_or(name)
    }

    /// The hook that a function of the framework calls in this kernel: `bpf_map_free` since 6.9 was `bpf_map_free_security`
    /// before.
    pub fn hook_of(&self, function: &str) -> Option<&'static str> {
        let hook = hook_of(function)?;
        let has = |name: &str| self.hooks.contains(name);
        let former = format!("{hook}_security");
        if !has(hook) && has(&former) { known(&former) } else { Some(hook) }
    }

    /// The kernel's hooks, by the functions to which BPF LSM attaches; none without BPF LSM.
    pub(super) fn hooks(&self) -> impl Iterator<Item = &str> {
        self.hooks.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ffffffff81000000 T _text\nffffffff81000100 t do_one.part.0\nffffffff81000200 T bpf_lsm_file_open\n\
        ffffffff81000300 T bpf_lsm_bpf_map_free_security\n\
        ffffffff82000000 D jiffies\n0000000000000000 A fixed_percpu_data\n";

    #[test]
    fn finds_the_function_that_an_address_is_in() {
        let mut symbols = Symbols::parse(TEXT);
        assert_eq!(symbols.name(0xffff_ffff_8100_0004), "_text");
        assert_eq!(symbols.name(0xffff_ffff_8100_01ff), "do_one");
        assert_eq!(symbols.name(1), "?");
        assert_eq!(symbols.hooks().collect::<Vec<_>>(), ["bpf_map_free_security", "file_open"]);
        assert_eq!(symbols.hook_of("bpf_map_free"), Some("bpf_map_free_security"));
        assert_eq!(symbols.hook_of("file_open"), Some("file_open"));
    }
}
