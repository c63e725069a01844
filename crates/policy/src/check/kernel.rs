//! What a kernel does with a policy.

use std::collections::BTreeSet;

use super::{Finding, Kernel, Severity};
use crate::model::{HandleUnknown, Policy};

pub(super) fn findings(policy: &Policy, kernel: &Kernel) -> Vec<Finding> {
    let mut unknown = Vec::new();
    let mut others = Vec::new();
    let mut own = Vec::new();
    for class in policy.classes.iter().filter(|class| !class.name.is_empty()) {
        let Some(checked) = kernel.classes.get(&class.name) else {
            let list = if kernel.ever.contains_key(&class.name) { &mut others } else { &mut own };
            list.push(class.name.clone());
            continue;
        };
        let ever = kernel.ever.get(&class.name);
        for permission in class.permissions.iter().filter(|permission| !checked.contains(*permission)) {
            let name = format!("{} {permission}", class.name);
            let known = ever.is_some_and(|ever| ever.contains(permission));
            if known { others.push(name) } else { unknown.push(name) }
        }
    }
    let series = &kernel.series;
    let capabilities: BTreeSet<String> = policy.capabilities.iter().cloned().collect();
    [
        Finding::about(
            Severity::Warning,
            format!("policy capabilities that Linux {series} does not have"),
            capabilities.difference(&kernel.capabilities).cloned(),
            "what they turn on is not enforced there: use a newer kernel, or do not rely on them",
        ),
        undefined(policy, kernel),
        Finding::about(
            Severity::Note,
            format!("classes and permissions that other kernels check and Linux {series} does not"),
            others,
            "rules that name them do nothing there",
        ),
        Finding::about(
            Severity::Note,
            format!("permissions of the kernel's classes that Linux {series} does not check"),
            unknown,
            "rules that name them do something only for programs that ask about them by themselves",
        ),
        Finding::about(
            Severity::Note,
            "classes that no kernel checks",
            own,
            "they are for programs that ask about them by themselves, such as D-Bus and systemd",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The kernel's classes and permissions that the policy does not define. A class may be missing as a whole, or some of
/// its permissions.
fn undefined(policy: &Policy, kernel: &Kernel) -> Option<Finding> {
    let mut names = Vec::new();
    for (name, permissions) in &kernel.classes {
        match policy.classes.iter().find(|class| class.name == *name) {
            None => names.push(name.clone()),
            Some(class) => names.extend(
                permissions
                    .iter()
                    .filter(|permission| !class.permissions.contains(permission))
                    .map(|permission| format!("{name} {permission}")),
            ),
        }
    }
    let (severity, makes, remedy) = match policy.handle_unknown {
        HandleUnknown::Allow => (
            Severity::Warning,
            "it allows them to everybody, because handle_unknown is allow",
            "define the classes and permissions that matter, or build with (handleunknown deny)",
        ),
        HandleUnknown::Deny => (
            Severity::Note,
            "it denies them to everybody, because handle_unknown is deny",
            "define those that a domain needs, and allow them",
        ),
        HandleUnknown::Reject => (
            Severity::Warning,
            "it refuses the policy, because handle_unknown is reject",
            "define them all, or build with (handleunknown deny)",
        ),
    };
    let text = format!("classes and permissions of Linux {} that the policy does not define; {makes}", kernel.series);
    Finding::about(severity, text, names, remedy)
}
