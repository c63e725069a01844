//! Recognises the framework's functions: those whose code calls the security modules.
//!
//! Their names are not enough, because SELinux has functions of its own that begin with `security_`. Until 6.11 a function
//! walks its list in `security_hook_heads`; since 6.12 it makes static calls, `lsm_static_call_NAME_N`, or walks
//! `static_calls_table`. Both contain the hook's name.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    btf::Btf,
    code::{Body, Reader},
    symbols::Symbols,
};

/// The tables of registered hooks: the variable and its structure.
const TABLES: [(&str, &str); 2] =
    [("security_hook_heads", "security_hook_heads"), ("static_calls_table", "lsm_static_calls_table")];
const STATIC_CALL: &str = "__SCT__lsm_static_call_";
/// The prefix of the framework's functions.
const PREFIX: &str = "security_";

/// Functions of kernel/bpf/bpf_lsm.c that belong to no hook.
const NO_HOOKS: [&str; 7] =
    ["find_cgroup_shim", "func_proto", "get_retval_range", "init", "is_sleepable_hook", "is_trusted", "verify_prog"];

/// The hooks of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    /// Functions that call hooks, by number, with these hooks.
    pub(crate) functions: BTreeMap<u32, BTreeSet<String>>,
    /// All hooks of the kernel, for which modules can register.
    pub(crate) all: BTreeSet<String>,
}

/// Finds the hooks.
pub(crate) fn find(reader: &Reader<'_>, bodies: &[Body]) -> Hooks {
    let symbols = reader.symbols;
    let ranges: Vec<_> = TABLES
        .iter()
        .filter_map(|(variable, structure)| {
            let members = members(reader.btf, structure);
            Some((symbols.address(variable)?, members))
        })
        .collect();
    let mut hooks = Hooks { all: all(reader.btf, symbols), ..Hooks::default() };
    for (number, body) in (0..).zip(bodies) {
        let function = &symbols.functions()[number as usize];
        if !function.name.starts_with(PREFIX) || is_registering(&function.name) {
            continue;
        }
        let named = ranges.iter().flat_map(|(start, members)| {
            body.named.iter().filter_map(|address| {
                let offset = u32::try_from(address.checked_sub(*start)?).ok()?;
                member_at(members, offset).map(str::to_string)
            })
        });
        let called = body.statics.iter().filter_map(|number| {
            let rest = symbols.functions()[*number as usize].name.strip_prefix(STATIC_CALL)?;
            Some(rest.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_').to_string())
        });
        let asked: BTreeSet<String> = named.chain(called).collect();
        if !asked.is_empty() {
            hooks.functions.insert(number, asked);
        }
    }
    hooks
}

/// Whether a function writes the tables.
fn is_registering(name: &str) -> bool {
    matches!(name, "security_add_hooks" | "security_delete_hooks" | "security_init")
}

fn member_at(members: &[(String, u32, u32)], offset: u32) -> Option<&str> {
    let holds = |place: u32, size: u32| offset.checked_sub(place).is_some_and(|inner| inner < size);
    members.iter().find(|(_, place, size)| holds(*place, *size)).map(|(name, ..)| name.as_str())
}

fn members(btf: Option<&Btf>, structure: &str) -> Vec<(String, u32, u32)> {
    let Some((btf, id)) = btf.and_then(|btf| Some((btf, btf.compound(structure)?))) else {
        // Without types, the whole table is one member.
        return vec![(String::new(), 0, 4096)];
    };
    btf.members(id).map(|(name, offset, size)| (name.to_string(), offset, size)).collect()
}

/// The members of `union security_list_options`; without BTF, the hooks to which BPF programs can attach.
fn all(btf: Option<&Btf>, symbols: &Symbols) -> BTreeSet<String> {
    let typed = btf.and_then(|btf| Some((btf, btf.compound("security_list_options")?)));
    match typed {
        Some((btf, id)) => {
            let names = btf.members(id).map(|(name, ..)| name.to_string());
            // Since 6.12 the union also has a member for any of them as a plain address.
            names.filter(|name| name != "lsm_func_addr").collect()
        }
        None => {
            let names = symbols.functions().iter().filter_map(|function| function.name.strip_prefix("bpf_lsm_"));
            names.filter(|name| !NO_HOOKS.contains(name)).map(str::to_string).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_member_that_holds_an_offset_also_where_its_end_is_past_every_number() {
        let members = [("first".to_string(), 0, 8), ("last".to_string(), 8, u32::MAX)];
        let found = [0, 7, 8, u32::MAX].map(|offset| member_at(&members, offset));
        assert_eq!(found, [Some("first"), Some("first"), Some("last"), Some("last")]);
        assert_eq!(member_at(&members[..1], 8), None);
    }
}
