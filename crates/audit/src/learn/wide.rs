//! What a rule allows that its writer may not have meant, because a type stands for more than one might think.

use std::collections::BTreeSet;

use tollgate_policy::model::{InitialSid, Policy};

use super::{Rule, Subject};

/// Capabilities that give nearly all of root's power, with a description of each.
const POWERS: [(&str, &str); 6] = [
    ("sys_admin", "most of root's power"),
    ("sys_module", "code in the kernel"),
    ("sys_ptrace", "the memory of other processes"),
    ("dac_override", "files whatever their owner and mode"),
    ("dac_read_search", "to read files whatever their owner and mode"),
    ("setuid", "to become any user"),
];

/// The wide parts of a rule in words; each completes `This allows ...`.
pub(super) fn in_words(policy: &Policy, (_, target, class): &Subject, rule: &Rule) -> Vec<String> {
    let is = |name: &str| rule.permissions.contains_key(name);
    let initial = |name: &str| policy.initial_sids.iter().any(|sid| sid.name == name && is_of(policy, sid, target));
    let mut words = Vec::new();
    for (permission, verb) in [("name_bind", "to listen on"), ("name_connect", "to connect to")] {
        if is(permission) && initial("port") {
            let port = port(rule, permission, class);
            words.push(format!("{verb} {target}, the type of every port without a portcon: instead, give {port}"));
        }
    }
    if class == "file" && initial("file") && ["read", "open", "write", "append"].iter().any(|permission| is(permission))
    {
        words.push(format!("{target}, the type of every file that file_contexts do not name: name it there instead"));
    }
    match (target.as_str(), is("execute_no_trans")) {
        ("shell_exec_t", true) => words.push("a shell, also to an attacker who takes over this domain".to_owned()),
        ("bin_t", true) => words.push("every program that has no type of its own, including interpreters".to_owned()),
        _ => {}
    }
    if class.starts_with("capability") {
        let powers = POWERS.iter().filter(|(name, _)| is(name));
        words.extend(powers.map(|(name, what)| format!("{what} ({name})")));
    }
    words
}

fn is_of(policy: &Policy, sid: &InitialSid, name: &str) -> bool {
    policy.types.get(sid.context.type_ as usize).is_some_and(|type_| type_.name == name)
}

/// For the ports that were requested: `8085 a type (tollgate port add -t TYPE -p tcp 8085)`.
fn port(rule: &Rule, permission: &str, class: &str) -> String {
    let key = if permission == "name_bind" { "src=" } else { "dest=" };
    let objects = rule.permissions.get(permission).into_iter().flat_map(|evidence| &evidence.objects);
    let words = objects.flat_map(|object| object.split_whitespace());
    let ports: BTreeSet<u16> = words.filter_map(|word| word.strip_prefix(key)?.parse().ok()).collect();
    let protocol = class.strip_suffix("_socket").unwrap_or(class);
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    match &ports[..] {
        [] => "the port a type (tollgate port add)".to_owned(),
        [first, ..] => format!("{} a type (tollgate port add -t TYPE -p {protocol} {first})", ports.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tollgate_policy::model::{Context, Type};

    use super::*;
    use crate::learn::Evidence;

    fn of(target: &str, class: &str, permissions: &[(&str, &str)]) -> Vec<String> {
        let types = ["", "port_t", "file_t", "bin_t", "shell_exec_t", "web_port_t"];
        let initial = |name: &str, type_| InitialSid {
            sid: type_,
            name: name.to_owned(),
            context: Context { type_, ..Context::default() },
        };
        let policy = Policy {
            types: types.iter().map(|name| Type { name: (*name).to_owned(), ..Type::default() }).collect(),
            initial_sids: vec![initial("port", 1), initial("file", 2)],
            ..Policy::default()
        };
        let evidence = |object: &str| Evidence { objects: [object.to_owned()].into(), ..Evidence::default() };
        let permissions: BTreeMap<String, Evidence> =
            permissions.iter().map(|(name, object)| ((*name).to_owned(), evidence(object))).collect();
        let subject = ("web_t".to_owned(), target.to_owned(), class.to_owned());
        in_words(&policy, &subject, &Rule { permissions, ..Rule::default() })
    }

    #[test]
    fn tells_which_port_should_have_a_type_of_its_own() {
        let words = of("port_t", "tcp_socket", &[("name_bind", "src=8085"), ("name_connect", "dest=443")]);
        let expected = [
            "to listen on port_t, the type of every port without a portcon: instead, give 8085 a type (tollgate port add -t TYPE -p tcp 8085)",
            "to connect to port_t, the type of every port without a portcon: instead, give 443 a type (tollgate port add -t TYPE -p tcp 443)",
        ];
        assert_eq!(words, expected);
        assert!(of("web_port_t", "tcp_socket", &[("name_bind", "src=8085")]).is_empty());
    }

    #[test]
    fn tells_shells_programs_unnamed_files_and_powers() {
        for (target, class, permission, word) in [
            ("shell_exec_t", "file", "execute_no_trans", "a shell"),
            ("bin_t", "file", "execute_no_trans", "every program"),
            ("file_t", "file", "read", "every file that file_contexts do not name"),
            ("web_t", "capability", "sys_admin", "most of root's power"),
        ] {
            let words = of(target, class, &[(permission, "")]);
            assert!(words.len() == 1 && words[0].contains(word), "{words:?}");
        }
        assert!(of("bin_t", "file", &[("execute", ""), ("read", "")]).is_empty(), "an interpreter is mapped");
        assert!(of("file_t", "dir", &[("search", ""), ("read", "")]).is_empty());
    }
}
