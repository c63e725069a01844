//! Commands about enforcement on this machine. All but `enforce` send requests to its daemon.

mod ago;
pub(crate) mod enforce;
mod kept;
pub(crate) mod label;
pub(crate) mod mode;
pub(crate) mod preload;
pub(crate) mod ps;
pub(crate) mod reload;
pub(crate) mod run;
pub(crate) mod shadow;
pub(crate) mod status;
pub(crate) mod stop;
mod wait;
mod why;

use tollgate_client::status::Revoked;

/// What processes hold that the policy in force denies; `None`: nothing.
fn revoked(revoked: &Revoked) -> Option<String> {
    let Revoked { descriptors, mappings, processes } = *revoked;
    let counted = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    (descriptors + mappings > 0).then(|| {
        format!(
            "{} (denied at their use) and {} of files, in {}",
            counted(descriptors, "descriptor", "descriptors"),
            counted(mappings, "mapping", "mappings"),
            counted(processes, "process", "processes")
        )
    })
}
