//! What a rule allows that its writer may not have meant: types that stand for more than one thinks.

use std::collections::BTreeSet;

use tollgate_policy::model::{InitialSid, Policy};

use super::{Rule, Subject};

/// Capabilities that are nearly all of root's power, and what each is.
const POWERS: [(&str, &str); 6] = [
    ("sys_admin", "most of what root may"),
    ("sys_module", "code in the kernel"),
    ("sys_ptrace", "the memory of other processes"),
    ("dac_override", "files whatever their owner and mode"),
    ("dac_read_search", "to read files whatever their owner and mode"),
    ("setuid", "to become any user"),
];

/// What of a rule is wide, in words, each after `this allows`.
pub(super) fn told(policy: &Policy, (_, target, class): &Subject, rule: &Rule) -> Vec<String> {
    let is = |name: &str| rule.permissions.contains_key(name);
    let initial = |name: &str| policy.initial_sids.iter().any(|sid| sid.name == name && is_of(policy, sid, target));
    let mut told = Vec::new();
    for (permission, verb) in [("name_bind", "to listen on"), ("name_connect", "to connect to")] {
        if is(permission) && initial("port") {
            let port = port(rule, permission, class);
            told.push(format!("{verb} {target}, which is each port without a portcon: rather give {port}"));
        }
    }
    if class == "file" && initial("file") && ["read", "open", "write", "append"].iter().any(|permission| is(permission))
    {
        told.push(format!("{target}, which is each file that file_contexts do not name: rather name it there"));
    }
    match (target.as_str(), is("execute_no_trans")) {
        ("shell_exec_t", true) => told.push("a shell, to whoever takes this domain over, too".to_owned()),
        ("bin_t", true) => told.push("each program that has no type of its own, interpreters among them".to_owned()),
        _ => {}
    }
    if class.starts_with("capability") {
        let powers = POWERS.iter().filter(|(name, _)| is(name));
        told.extend(powers.map(|(name, what)| format!("{what} ({name})")));
    }
    told
}

fn is_of(policy: &Policy, sid: &InitialSid, name: &str) -> bool {
    policy.types.get(sid.context.type_ as usize).is_some_and(|type_| type_.name == name)
}

/// `8085 a type (tollgate port add -t TYPE -p tcp 8085)`, of the ports that were asked for.
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
        told(&policy, &subject, &Rule { permissions, ..Rule::default() })
    }

    #[test]
    fn tells_which_port_should_have_a_type_of_its_own() {
        let told = of("port_t", "tcp_socket", &[("name_bind", "src=8085"), ("name_connect", "dest=443")]);
        let expected = [
            "to listen on port_t, which is each port without a portcon: rather give 8085 a type (tollgate port add -t TYPE -p tcp 8085)",
            "to connect to port_t, which is each port without a portcon: rather give 443 a type (tollgate port add -t TYPE -p tcp 443)",
        ];
        assert_eq!(told, expected);
        assert!(of("web_port_t", "tcp_socket", &[("name_bind", "src=8085")]).is_empty());
    }

    #[test]
    fn tells_shells_programs_unnamed_files_and_powers() {
        for (target, class, permission, word) in [
            ("shell_exec_t", "file", "execute_no_trans", "a shell"),
            ("bin_t", "file", "execute_no_trans", "each program"),
            ("file_t", "file", "read", "each file that file_contexts do not name"),
            ("web_t", "capability", "sys_admin", "most of what root may"),
        ] {
            let told = of(target, class, &[(permission, "")]);
            assert!(told.len() == 1 && told[0].contains(word), "{told:?}");
        }
        assert!(of("bin_t", "file", &[("execute", ""), ("read", "")]).is_empty(), "an interpreter is mapped");
        assert!(of("file_t", "dir", &[("search", ""), ("read", "")]).is_empty());
    }
}
