//! What an agent's descriptors hold: anybody's bytes, until they are copied and checked.

use std::{fs::File, io::Read};

use tollgate_client::protocol::Refusal;
use tollgate_fleet::{Generation, Manifest, part::Part};

/// The maximum length of a manifest and of a root file, in bytes.
pub(super) const MAX_DOCUMENT: u64 = 1 << 16;
/// What a built policy has beside its sections, at most.
const MAX_HEADER: u64 = 1 << 16;

/// The bytes of a file: at most so many, so that no agent fills the daemon's memory.
pub(super) fn copy(file: File, limit: u64, what: &str) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let unreadable = |cause| Refusal::new(libc::EIO, format!("cannot read {what}: {cause}"));
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(Refusal::new(libc::EFBIG, format!("{what} is longer than {limit} bytes: look who offers it")));
    }
    Ok(bytes)
}

/// The generation that a manifest names. Nothing is read beyond the lengths that the manifest names.
pub(super) fn generation(manifest: &Manifest, parts: Vec<(String, File)>) -> Result<Generation, Refusal> {
    let sections = manifest.parts.iter().filter(|entry| matches!(entry.part, Part::Policy(_)));
    let policy_limit = sections.map(|entry| entry.length).sum::<u64>() + MAX_HEADER;
    let (mut policy, mut others) = (None, Vec::new());
    for (name, file) in parts {
        if name == "policy" {
            policy = Some(copy(file, policy_limit, "the policy")?);
            continue;
        }
        let entry = name.parse().ok().and_then(|part| manifest.part(part));
        let entry = entry.ok_or_else(|| wrong(&format!("the manifest names no part {name}: offer what it names")))?;
        others.push((entry.part, copy(file, entry.length, &name)?));
    }
    let policy = policy.ok_or_else(|| {
        Refusal::new(libc::ENODATA, "the generation is not in force here: offer its policy with the manifest")
    })?;
    let generation = Generation::new(&policy, others).map_err(|cause| wrong(&cause.to_string()))?;
    // Two files of one policy may differ in what is between the sections; what is written is made of the sections.
    if generation.is(&manifest.parts) {
        Ok(generation)
    } else {
        Err(wrong("the parts are not those that the manifest names: look who has changed them"))
    }
}

fn wrong(text: &str) -> Refusal {
    Refusal::new(libc::EBADMSG, text)
}
