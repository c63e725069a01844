//! Generalises what TOMOYO learnt for the next run: names that contain a process or inode number, and ports that the kernel
//! assigns, differ from run to run.

use std::{borrow::Cow, collections::BTreeSet};

/// A change of the policy in the kernel, and its size afterwards.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Learnt {
    /// Texts to write to `domain_policy`, one per changed domain: old rules deleted, their generalisations added.
    pub(super) changes: Vec<String>,
    /// The number of rules after the change.
    pub(super) rules: usize,
    /// The number of domains.
    pub(super) domains: usize,
    /// Domains that reached the limit of rules, so that something was not learnt.
    pub(super) overflowed: Vec<String>,
}

/// Reads `domain_policy`: a line `<kernel> /bin/sh` begins a domain, and its rules follow, one per line.
pub(super) fn generalise(policy: &str) -> Learnt {
    let mut learnt = Learnt::default();
    let mut lines = policy.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('<') {
            continue;
        }
        learnt.domains += 1;
        let mut rules = BTreeSet::new();
        let mut change = String::new();
        while let Some(rule) = lines.next_if(|next| !next.starts_with('<')) {
            if rule == "quota_exceeded" {
                learnt.overflowed.push(line.to_owned());
            } else if is_rule(rule) {
                let general = generalise_rule(rule);
                if general != rule {
                    change += &format!("delete {rule}\n");
                    if !rules.contains(&general) {
                        change += &format!("{general}\n");
                    }
                }
                rules.insert(general);
            }
        }
        learnt.rules += rules.len();
        if !change.is_empty() {
            learnt.changes.push(format!("{line}\n{change}"));
        }
    }
    learnt
}

/// Whether a line grants something, and is not a setting of the domain.
fn is_rule(line: &str) -> bool {
    ["file ", "network ", "misc ", "task ", "capability "].iter().any(|family| line.starts_with(family))
}

fn generalise_rule(rule: &str) -> String {
    let port = rule.starts_with("network inet ").then(|| rule.rsplit(' ').next()).flatten();
    let words = rule.split(' ').map(|word| match word.parse::<u16>() {
        // The kernel assigns ports from net.ipv4.ip_local_port_range; lower ones are the workload's own.
        Ok(number) if port == Some(word) && number >= 1024 => Cow::from("1024-65535"),
        _ if is_name(word) => Cow::from(any_number(word)),
        _ => Cow::from(word),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a word is the name of a file: `/work/f1`, `proc:/1/stat`, `pipe:[1]`, an abstract socket's `\000name`.
fn is_name(word: &str) -> bool {
    let special = word.split_once(':').is_some_and(|(_, rest)| rest.starts_with(['/', '[']));
    word.starts_with(['/', '\\'])
        || special
        || word.starts_with("exec.realpath=")
        || word.starts_with("symlink.target=")
}

/// Replaces each number by `\$`, TOMOYO's pattern for one digit or more. `\040` and similar escapes are characters.
fn any_number(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let taken = if first == '\\' {
            let octal = rest[1..].bytes().take(3).take_while(u8::is_ascii_digit).count();
            let taken = if octal == 3 { 4 } else { rest.len().min(2) };
            text += &rest[..taken];
            taken
        } else if first.is_ascii_digit() {
            text += r"\$";
            rest.bytes().take_while(u8::is_ascii_digit).count()
        } else {
            text.push(first);
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_any_number_in_names() {
        assert_eq!(generalise_rule("file create /work/f12/x3 0644"), r"file create /work/f\$/x\$ 0644");
        assert_eq!(generalise_rule("file read proc:/17/stat"), r"file read proc:/\$/stat");
        assert_eq!(
            generalise_rule(r#"file symlink /w/s symlink.target="f9""#),
            r#"file symlink /w/s symlink.target="f\$""#
        );
    }

    #[test]
    fn keeps_modes_commands_and_escaped_characters() {
        for rule in [
            "file ioctl /dev/null 0x5401",
            r#"file execute /bin/sh exec.realpath="/bin/sh" exec.argv[0]="sh1""#,
            r"file read /a\040b",
            "misc env L1",
        ] {
            assert_eq!(generalise_rule(rule), rule);
        }
        assert_eq!(
            generalise_rule(r"network unix stream connect \000name7"),
            r"network unix stream connect \000name\$"
        );
    }

    #[test]
    fn allows_any_port_that_the_kernel_may_hand_out() {
        assert_eq!(
            generalise_rule("network inet stream connect 127.0.0.1 40123"),
            "network inet stream connect 127.0.0.1 1024-65535"
        );
        assert_eq!(generalise_rule("network inet raw bind 127.0.0.1 17"), "network inet raw bind 127.0.0.1 17");
    }

    #[test]
    fn changes_each_domain_by_itself_and_counts_rules_once() {
        let policy = "<kernel>\nuse_profile 1\nuse_group 0\n\nfile read /w/f1\nfile read /w/f2\n\
                      file read /w/f\n\n<kernel> /bin/sh\nuse_profile 1\nuse_group 0\n\nfile read /x\n";
        let learnt = generalise(policy);
        assert_eq!(learnt.domains, 2);
        assert_eq!(learnt.rules, 3);
        assert_eq!(learnt.overflowed, [""; 0]);
        assert_eq!(learnt.changes, ["<kernel>\ndelete file read /w/f1\nfile read /w/f\\$\ndelete file read /w/f2\n"]);
    }

    #[test]
    fn reports_a_domain_that_could_not_learn_all() {
        let learnt = generalise("<kernel> /a\nuse_profile 1\nquota_exceeded\n\nfile read /x\n");
        assert_eq!(learnt.overflowed, ["<kernel> /a"]);
    }
}
