//! SELinux: loads a binary policy and sets the mode.

use std::{fs, path::Path};

use super::securityfs::{mount_at, read, require, write};
use crate::{Error, error::Context};

/// The mount point of selinuxfs.
const ROOT: &str = "/sys/fs/selinux";

/// Loads the policy, if there is one, and sets the mode. The returned description is read back from the kernel.
pub(super) fn load(policy: Option<&Path>, enforcing: bool) -> Result<String, Error> {
    require("selinux")?;
    if !is_loaded() {
        mount_at(ROOT, "selinuxfs")?;
    }
    let Some(policy) = policy else {
        if enforcing {
            return Err(Error::Unavailable(
                "selinux cannot enforce without a policy; give the confinement one".to_owned(),
            ));
        }
        return Ok("selinux: active, no policy loaded".to_owned());
    };
    let bytes = fs::read(policy).context(format!("read the policy {}", policy.display()))?;
    let newest = read(&format!("{ROOT}/policyvers"))?;
    write(&format!("{ROOT}/load"), &bytes).map_err(|error| {
        let policy = policy.display();
        Error::Unavailable(format!(
            "{error}; this kernel takes policies up to version {newest}: build {policy} for that"
        ))
    })?;
    write(&format!("{ROOT}/enforce"), if enforcing { b"1" } else { b"0" })?;
    verify(enforcing)
}

/// Moves the calling process, which must have one thread, into another context for good.
pub(super) fn enter(context: &str) -> Result<String, Error> {
    write("/proc/thread-self/attr/current", context.as_bytes())?;
    Ok(format!("this process is {context}"))
}

pub(super) fn is_loaded() -> bool {
    Path::new(ROOT).join("policyvers").exists()
}

/// A line without a context resets it (selinux_setprocattr).
pub(super) fn label_new_sockets(context: Option<&str>) -> Result<(), Error> {
    write("/proc/thread-self/attr/sockcreate", context.unwrap_or("\n").as_bytes())
}

fn verify(enforcing: bool) -> Result<String, Error> {
    let mode = match read(&format!("{ROOT}/enforce"))?.as_str() {
        "1" => "enforcing",
        _ => "permissive",
    };
    if (mode == "enforcing") != enforcing {
        return Err(Error::Unavailable(format!(
            "selinux stays {mode}; the kernel needs CONFIG_SECURITY_SELINUX_DEVELOP to change it"
        )));
    }
    let classes = fs::read_dir(format!("{ROOT}/class")).context("list selinux classes")?.count();
    let version = read(&format!("{ROOT}/policyvers"))?;
    let context = read("/proc/thread-self/attr/current")?;
    Ok(format!("selinux: {mode}, {classes} classes, policy versions up to {version}, {context}"))
}
