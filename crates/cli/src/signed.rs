//! Files that a machine may demand to be signed.

use std::path::Path;

use anyhow::bail;
use tollgate_signing::{Content, Signatures, Trusted};

/// Refuses a file that is not signed, if this machine has keys that it trusts.
pub(crate) fn check(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let Some(trusted) = Trusted::of_machine(Path::new(Trusted::FILE))? else { return Ok(()) };
    let signatures = Signatures::read_if_any(&Signatures::of(path))?;
    if trusted.verify(&Content::of(bytes), &signatures).is_none() {
        bail!(
            "{} is not signed by a key in {}: sign it with `tollgate key sign {} --key KEY`",
            path.display(),
            trusted.path().display(),
            path.display()
        );
    }
    Ok(())
}
