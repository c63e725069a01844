use super::{ContextError, Kind, Names, nearest, restored, text};
use crate::model::{Category, Policy, Role, Sensitivity, Type, User};

fn named(name: &str) -> Type {
    Type { name: name.to_owned(), ..Type::default() }
}

fn policy() -> Policy {
    Policy {
        mls: true,
        types: vec![named(""), named("sshd_t"), Type { attribute: true, ..named("domain") }, named("shadow_t")],
        type_aliases: vec![("secret_t".to_owned(), 3)],
        roles: vec![Role::default(), Role { name: "object_r".to_owned(), ..Role::default() }],
        users: vec![User::default(), User { name: "system_u".to_owned(), ..User::default() }],
        sensitivities: ["", "s0", "s1"]
            .map(|name| Sensitivity { name: name.to_owned(), ..Sensitivity::default() })
            .to_vec(),
        categories: (0..1024).map(|n| Category { name: format!("c{n}"), aliases: Vec::new() }).collect(),
        ..Policy::default()
    }
}

#[test]
fn writes_contexts_as_it_reads_them() {
    let policy = policy();
    let names = Names::of(&policy);
    for written in [
        "system_u:object_r:sshd_t:s0",
        "system_u:object_r:shadow_t:s0-s1",
        "system_u:object_r:shadow_t:s1:c0,c5,c7.c9,c1023",
        "system_u:object_r:shadow_t:s0:c2-s1:c0.c1023",
        "system_u:object_r:shadow_t:s0:c1,c2,c4",
    ] {
        assert_eq!(text(&policy, &names.context(&policy, written).unwrap()), written);
    }
}

#[test]
fn reads_what_the_kernel_reads_too() {
    let policy = policy();
    let names = Names::of(&policy);
    let read = |written: &str| text(&policy, &names.context(&policy, written).unwrap());
    assert_eq!(
        read("system_u:object_r:secret_t:s0-s0"),
        "system_u:object_r:shadow_t:s0",
        "an alias, a range of one level"
    );
    assert_eq!(read("system_u:object_r:sshd_t:s0:c2,c0.c1"), "system_u:object_r:sshd_t:s0:c0.c2", "in any order");
}

#[test]
fn rejects_what_is_not_a_context() {
    let policy = policy();
    let names = Names::of(&policy);
    for (written, part) in [
        ("system_u:object_r:sshd_t", "USER:ROLE:TYPE:RANGE is expected"),
        ("system_u:object_r", "USER:ROLE:TYPE:RANGE is expected"),
        ("", "USER:ROLE:TYPE:RANGE is expected"),
        ("system_u:object_r:sshd_t:", "is not a range"),
        ("system_u:object_r:sshd_t:s0:", "is not a range"),
        ("system_u:object_r:sshd_t:s0:c5.c1", "is not a range"),
        ("system_u:object_r:sshd_t:s0:c5.c5", "is not a range"),
        ("system_u:object_r:sshd_t:s0:c1,", "no category ``"),
        ("system_u:object_r:sshd_t:s0:c1024", "no category `c1024` (like it: c10"),
        ("system_u:object_r:sshd_t:s9", "no sensitivity `s9` (like it: s0, s1)"),
        ("system_u:object_r:ssh_t:s0", "no type `ssh_t` (like it: sshd_t)"),
        ("system_u:object_r:domain:s0", "`domain` is an attribute"),
        ("root:object_r:sshd_t:s0", "no user `root`"),
    ] {
        let error = names.context(&policy, written).unwrap_err().to_string();
        assert!(error.contains(part), "{written}: {error}");
    }
}

#[test]
fn rejects_a_range_in_a_policy_without_mls() {
    let policy = Policy { mls: false, ..policy() };
    let names = Names::of(&policy);
    assert!(matches!(names.context(&policy, "system_u:object_r:sshd_t:s0"), Err(ContextError::Shape { .. })));
    assert_eq!(text(&policy, &names.context(&policy, "system_u:object_r:sshd_t").unwrap()), "system_u:object_r:sshd_t");
}

#[test]
fn offers_the_nearest_names_first() {
    let names = ["httpd_t", "http_port_t", "sshd_t", "shadow_t", "httpd_exec_t"];
    assert_eq!(nearest("htpd_t", names.into_iter()), ["httpd_t", "sshd_t"]);
    assert_eq!(nearest("unrelated_name", names.into_iter()), Vec::<String>::new());
}

#[test]
fn finds_permissions_as_bits_of_their_class() {
    use crate::model::Class;
    let class = |name: &str, permissions: &[&str]| Class {
        name: name.to_owned(),
        permissions: permissions.iter().map(ToString::to_string).collect(),
        ..Class::default()
    };
    let policy = Policy { classes: vec![class("", &[]), class("file", &["ioctl", "read", "write"])], ..policy() };
    let names = Names::of(&policy);
    assert_eq!(names.permission(names.find(Kind::Class, "file").unwrap(), "write"), Ok(4));
    let error = names.permission(1, "raed").unwrap_err().to_string();
    assert!(error.contains("no permission `raed` (like it: read)"), "{error}");
}

const UNLABELLED: &str = "system_u:object_r:unlabeled_t:s15:c0.c1023";

#[test]
fn restores_the_type_alone_unless_the_whole_is_wanted() {
    let (from, to) = ("staff_u:object_r:user_t:s0:c1.c3", "system_u:object_r:etc_t:s0");
    let restored = |from, whole| restored(from, to, UNLABELLED, whole);
    assert_eq!(restored(from, false).as_deref(), Some("staff_u:object_r:etc_t:s0:c1.c3"));
    assert_eq!(restored(from, true).as_deref(), Some(to));
    assert_eq!(restored("staff_u:object_r:etc_t:s0:c1", false), None);
    assert_eq!(restored("staff_u:object_r:etc_t:s0:c1", true).as_deref(), Some(to));
    assert_eq!(restored(to, true), None);
    assert_eq!(restored("", false).as_deref(), Some(to));
}

#[test]
fn keeps_neither_user_nor_level_of_what_is_unlabelled() {
    let to = "system_u:object_r:data_t:s0";
    for from in [UNLABELLED, "staff_u:object_r:unlabeled_t:s15-s15:c0.c1023"] {
        assert_eq!(restored(from, to, UNLABELLED, false).as_deref(), Some(to), "{from}");
    }
    assert_eq!(restored(UNLABELLED, UNLABELLED, UNLABELLED, false), None);
}
