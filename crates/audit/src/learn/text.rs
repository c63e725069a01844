//! The learnt rules as CIL, each with its evidence as comments.

use std::{collections::BTreeMap, fmt};

use super::{Apart, Call, Evidence, Learnt, Rule, Subject};
use crate::Reason;

/// CIL that is built together with the sources of the policy that it was learnt for.
impl fmt::Display for Learnt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (denials, rules, permissions) = (self.evidence.count, self.rules.len(), self.granted());
        let calls = if self.calls.is_empty() { String::new() } else { format!(" macros: {},", self.calls.len()) };
        writeln!(
            f,
            "; Learnt by tollgate learn. Denials: {denials},{calls} rules: {rules}, permissions: {permissions}."
        )?;
        self.doubts().iter().try_for_each(|doubt| writeln!(f, "; {doubt}"))?;
        self.wide().iter().try_for_each(|wide| writeln!(f, "; Wide: {wide}."))?;
        self.calls.iter().try_for_each(|call| write!(f, "\n{call}"))?;
        self.rules.iter().try_for_each(|(subject, rule)| write_rule(f, subject, rule))?;
        self.apart
            .iter()
            .try_for_each(|apart| write!(f, "\n; No allow rule helps here:\n{}", commented(&apart.to_string())))
    }
}

impl Learnt {
    /// The calls and the rules alone, without comments.
    #[must_use]
    pub fn cil(&self) -> Vec<String> {
        let calls = self.calls.iter().map(Call::cil);
        calls.chain(self.rules.iter().flat_map(|(subject, rule)| statements(subject, rule))).collect()
    }

    /// What may be missing from the rules, one line each.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        doubts.extend(self.lost.iter().map(|(why, count)| {
            let first = match *why == Reason::KernelLimit.text() {
                true => "start the daemon again with a higher --audit-limit, run that command",
                false => "run it",
            };
            format!(
                "Events lost: {count} ({why}). What was denied then was not learnt. It is audited again only after another \
                                 tollgate mode permissive --domain TYPE: {first}, let it happen again, and learn again."
            )
        }));
        if self.enforced > 0 {
            doubts.push(format!(
                "Denials that were enforced: {}. What the process would have done next is in no log: run tollgate mode \
                 permissive --domain TYPE, let it happen again, and learn again.",
                self.enforced
            ));
        }
        let hiding = self.hiding.iter().filter(|(_, rules)| **rules > 0);
        doubts.extend(hiding.map(|(domain, rules)| {
            format!("Dontaudit rules for {domain}: {rules}. What they hide is in no log and was not learnt.")
        }));
        if self.allowed > 0 {
            doubts.push(format!("Left out, because the policy now allows it: {} denials.", self.allowed));
        }
        if self.silent > 0 {
            doubts.push(format!(
                "Left out, because the policy suppresses it on purpose (dontaudit): {} denials.",
                self.silent
            ));
        }
        doubts
    }
}

impl Call {
    fn cil(&self) -> String {
        format!("(call {} ({}))", self.name, self.domain)
    }
}

/// The call, with a comment that says what it replaces and what it allows in addition.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, about, permissions, beside, evidence, .. } = self;
        writeln!(f, "; {name}: {about}")?;
        writeln!(f, "; {permissions} permissions, denied {evidence}")?;
        let mut rest: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for (target, class, permission) in beside {
            rest.entry((target, class)).or_default().push(permission);
        }
        if !rest.is_empty() {
            let rest =
                rest.iter().map(|((target, class), names)| format!("{target}:{class} {{ {} }}", names.join(" ")));
            writeln!(f, "; Not denied, and allowed by it: {}", rest.collect::<Vec<_>>().join(", "))?;
        }
        writeln!(f, "{}", self.cil())
    }
}

fn write_rule(f: &mut fmt::Formatter<'_>, subject: &Subject, rule: &Rule) -> fmt::Result {
    writeln!(f)?;
    for (names, evidence) in alike(&rule.permissions) {
        let each = if names.len() > 1 { "each " } else { "" };
        writeln!(f, "; {}: {each}{evidence}", names.join(" "))?;
    }
    for (command, evidence) in &rule.commands {
        writeln!(f, "; ioctl {command:#06x}: {evidence}")?;
    }
    rule.notes.iter().try_for_each(|note| writeln!(f, "; {note}"))?;
    rule.wide.iter().try_for_each(|wide| writeln!(f, "; This allows {wide}."))?;
    statements(subject, rule).iter().try_for_each(|statement| writeln!(f, "{statement}"))
}

/// A rule as CIL: one statement for the permissions, and one for the commands of `ioctl`.
fn statements((source, target, class): &Subject, rule: &Rule) -> Vec<String> {
    let to = if source == target { "self" } else { target };
    let mut statements = Vec::new();
    if !rule.permissions.is_empty() {
        let permissions: Vec<&str> = rule.permissions.keys().map(String::as_str).collect();
        statements.push(format!("(allow {source} {to} ({class} ({})))", permissions.join(" ")));
    }
    if !rule.commands.is_empty() {
        let commands = ranges(rule.commands.keys().copied());
        statements.push(format!("(allowx {source} {to} (ioctl {class} ({})))", commands.join(" ")));
    }
    statements
}

/// Groups permissions with the same evidence. The `read` and `open` of one open(2) are printed together, for example.
fn alike(permissions: &BTreeMap<String, Evidence>) -> Vec<(Vec<&str>, Evidence)> {
    let mut groups: Vec<(Vec<&str>, Evidence)> = Vec::new();
    for (name, evidence) in permissions {
        let key = |evidence: &Evidence| (evidence.count, evidence.commands.clone(), evidence.objects.clone());
        match groups.iter_mut().find(|(_, other)| key(other) == key(evidence)) {
            Some((names, sum)) => {
                names.push(name);
                sum.first = sum.first.min(evidence.first);
                sum.last = sum.last.max(evidence.last);
            }
            None => groups.push((vec![name], evidence.clone())),
        }
    }
    groups
}

/// The commands as CIL, with consecutive numbers as one range.
fn ranges(commands: impl Iterator<Item = u16>) -> Vec<String> {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for command in commands {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(command) => *last = command,
            _ => runs.push((command, command)),
        }
    }
    let text = |(first, last): (u16, u16)| match first == last {
        true => format!("{first:#06x}"),
        false => format!("(range {first:#06x} {last:#06x})"),
    };
    runs.into_iter().map(text).collect()
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, target, class, permissions, why, cil, hints, evidence } = self;
        writeln!(f, "{class} {} of {target} by {source}: {evidence}", permissions.join(" "))?;
        why.iter().try_for_each(|why| writeln!(f, "  {why}"))?;
        if !cil.is_empty() {
            writeln!(f, "  this would allow it, all together:")?;
        }
        cil.iter().try_for_each(|cil| writeln!(f, "    {cil}"))?;
        hints.iter().try_for_each(|hint| writeln!(f, "  {hint}"))
    }
}

/// Writes each line as a comment.
fn commented(text: &str) -> String {
    text.lines().map(|line| format!("; {line}\n")).collect()
}
