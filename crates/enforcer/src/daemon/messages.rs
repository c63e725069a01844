//! Messages of the daemon in one line, on standard error and so in the journal.

use tollgate_abi::enforcer::tg_unlabelled;
use tollgate_audit::untrusted::for_people;
use tollgate_client::protocol::Mode;

use crate::labels::walk::Report;

/// What is in force: the user's name for the policy, the generation, the mode, and what was labelled, if this daemon
/// has labelled.
pub(super) fn in_force(policy: &str, generation: u32, mode: Mode, labelled: &Report) -> String {
    let Report { files, attributes, invalid, failures, .. } = labelled;
    let mut text = format!("{policy}, generation {generation}: {mode}");
    // A daemon that takes over enforcement finds the labels in place.
    if *files > 0 {
        text += &format!(", {files} files labelled, {attributes} of them by attributes");
    }
    if *failures > 0 {
        text += &format!(", {failures} could not be");
    }
    if *invalid > 0 {
        text += &format!(
            "; {invalid} have contexts that this policy does not have: they are unlabelled, and denied to confined domains \
             (`tollgate label lost`)"
        );
    }
    text
}

/// A message about objects without a label that confined processes have met: their number and the last one. `place` is
/// where its file system is mounted.
pub(super) fn unlabelled(count: u64, last: &tg_unlabelled, place: &str) -> String {
    let command: Vec<u8> = last.command.iter().map(|c| c.cast_unsigned()).take_while(|byte| *byte != 0).collect();
    let (command, process, inode) = (for_people(command), last.process, last.inode);
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    format!(
        "an object without label, which is denied to confined domains, was met {times}, the last by {command}[{process}]: inode \
         {inode} of {place} (find {place} -xdev -inum {inode})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_in_force_and_what_its_policy_does_not_know() {
        let mut report = Report::default();
        assert_eq!(in_force("/p", 2, Mode::Enforcing, &report), "/p, generation 2: enforcing");
        report = Report { files: 7, attributes: 3, ..report };
        let text = in_force("/p", 1, Mode::Permissive, &report);
        assert_eq!(text, "/p, generation 1: permissive, 7 files labelled, 3 of them by attributes");
        let text = in_force("/p", 1, Mode::Permissive, &Report { invalid: 2, failures: 1, ..report });
        assert!(text.contains(", 1 could not be; 2 have contexts that this policy does not have"), "{text}");
    }

    #[test]
    fn names_the_object_without_label_and_who_met_it() {
        let mut last = tg_unlabelled { inode: 13, process: 7, ..tg_unlabelled::default() };
        last.command[..4].copy_from_slice(&b"c\nat".map(u8::cast_signed));
        let text = unlabelled(2, &last, "/srv");
        assert!(text.contains("2 times, the last by c\\nat[7]: inode 13 of /srv"), "{text}");
    }
}
