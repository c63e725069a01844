//! What a policy needs and this kernel, or this program, cannot enforce.

use std::convert::Infallible;

use tollgate_policy::{decide::Tables, model::Policy};

use crate::{
    generation::CAPABILITIES,
    hooks::BadLine,
    labels::filesystems,
    needs, network,
    programs::{self, ProgramsError},
};

/// A policy that cannot be enforced completely.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this kernel cannot enforce all of the policy: {}; --accept-missing enforces the rest", .0.join(", "))]
pub struct Missing(pub Vec<String>);

/// Why it is not known what a kernel lacks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MissingError {
    /// The kernel's hooks, or the programs, cannot be read.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// The table of hooks in this program cannot be read.
    #[error(transparent)]
    Hooks(#[from] BadLine),
}

/// Refuses what is missing and was not accepted before.
pub fn refuse(missing: &[String], accepted: &[String]) -> Result<(), Missing> {
    let new: Vec<String> = missing.iter().filter(|name| !accepted.contains(name)).cloned().collect();
    if new.is_empty() { Ok(()) } else { Err(Missing(new)) }
}

/// What the running kernel cannot enforce of a policy, by name. `unconfined` names the unconfined domains.
/// `labelled`: packets have labels.
pub fn here(
    policy: &Policy,
    tables: &Tables,
    unconfined: &[String],
    labelled: bool,
) -> Result<Vec<String>, MissingError> {
    of(policy, tables, unconfined, &programs::hooks()?, labelled)
}

/// What a kernel with these hooks cannot enforce, by name.
pub fn of(
    policy: &Policy,
    tables: &Tables,
    unconfined: &[String],
    kernel: &[String],
    labelled: bool,
) -> Result<Vec<String>, MissingError> {
    let unknown = policy.capabilities.iter().filter(|name| !CAPABILITIES.contains(&name.as_str()));
    let mut missing: Vec<String> = unknown.map(|name| format!("the policy capability {name}")).collect();
    let asked = needs::missing(policy, tables, unconfined, kernel, labelled)?;
    // What no program checks on any kernel is not missing on this kernel.
    let all = programs::all()?;
    let here = asked
        .iter()
        .filter(|lost| lost.hooks.is_empty() || lost.hooks.iter().any(|hook| all.iter().any(|own| own == hook)));
    missing.extend(here.map(|lost| format!("{} {} ({})", lost.class, lost.permission, lost.because)));
    let Ok(filesystems) = filesystems::of(policy, &mut |_| Ok::<_, Infallible>(0));
    missing.extend(filesystems.unsupported);
    let Ok(network) = network::of(policy, &mut |_| Ok::<_, Infallible>(0));
    missing.extend(network.unsupported);
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use tollgate_policy::{
        built::Built,
        model::{Context, GenFs},
        sepol::Options,
        sources,
    };

    use super::*;

    /// A domain that may make no user namespace.
    const POLICY: &str = "(policycap open_perms) (class user_namespace (create)) (class process (fork)) \
        (classorder (user_namespace process)) (sid kernel) (sidorder (kernel)) (mls true) \
        (sensitivity s0) (sensitivityorder (s0)) (level low (s0)) (levelrange all (low low)) \
        (user user_u) (role object_r) (role user_r) (type user_t) (userrole user_u user_r) (userrole user_u object_r) \
        (userlevel user_u low) (userrange user_u all) (roletype user_r user_t) (allow user_t self (process (fork))) \
        (context kernel (user_u user_r user_t all)) (sidcontext kernel kernel)";

    /// Hooks that programs are for and Linux 6.1 does not have.
    const NOT_IN_6_1: [&str; 12] = [
        "inode_set_acl",
        "inode_remove_acl",
        "inode_get_acl",
        "inode_file_setattr",
        "inode_file_getattr",
        "mmap_backing_file",
        "bpf_map_create",
        "bpf_map_free",
        "bpf_prog_load",
        "bpf_prog_free",
        "uring_allowed",
        "watch_key",
    ];

    fn build(paths: &[PathBuf]) -> Built {
        sources::read(paths).unwrap().build(&Options::default()).unwrap()
    }

    fn missing(built: &Built, unconfined: &[String], kernel: &[String]) -> Vec<String> {
        of(&built.policy, built.server().unwrap().tables(), unconfined, kernel, false).unwrap()
    }

    fn built() -> Built {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.cil");
        fs::write(&path, POLICY).unwrap();
        build(&[path])
    }

    #[test]
    fn finds_that_linux_6_1_enforces_all_of_our_own_policy() {
        let mut kernel: Vec<String> = programs::all().unwrap();
        kernel.retain(|hook| !NOT_IN_6_1.contains(&hook.as_str()));
        let own = build(&[concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/tollgate").into()]);
        assert_eq!(missing(&own, &["unconfined_t".into(), "kernel_t".into()], &kernel), Vec::<String>::new());
    }

    #[test]
    fn names_what_no_hook_of_the_kernel_asks() {
        let all: Vec<String> = programs::all().unwrap();
        assert_eq!(missing(&built(), &[], &all), Vec::<String>::new());
        let older: Vec<String> = all.into_iter().filter(|hook| hook != "userns_create").collect();
        let missing = missing(&built(), &[], &older);
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(missing[0].starts_with("user_namespace create ("), "{missing:?}");
    }

    #[test]
    fn names_labels_of_paths_that_no_map_can_hold() {
        let mut built = built();
        let path = format!("/{}", "n".repeat(61));
        built.policy.genfs.push(GenFs {
            name: "proc".into(),
            path: path.clone(),
            class: 0,
            context: Context::default(),
        });
        let missing = missing(&built, &[], &programs::all().unwrap());
        assert!(missing.len() == 1 && missing[0].contains(&path), "{missing:?}");
    }

    #[test]
    fn names_policy_capabilities_that_nobody_knows() {
        let mut built = built();
        built.policy.capabilities.push("telepathy".into());
        let all: Vec<String> = programs::all().unwrap();
        assert_eq!(missing(&built, &[], &all), ["the policy capability telepathy"]);
    }
}
