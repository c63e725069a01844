use tollgate_abi::enforcer::{
    SECINITSID_UNLABELED, TG_FS_GENFS, TG_FS_TASK, TG_FS_TRANS, TG_FS_XATTR, TG_SID_SURVIVAL, tg_filesystem,
};
use tollgate_policy::model::{Context, FsUse, GenFs, Policy};

use super::{Filesystems, is_settable, of};
use crate::labels::genfs::Genfs;

fn context(type_: u32) -> Context {
    Context { user: 1, role: 1, type_, ..Context::default() }
}

fn fs_use(behaviour: u32, name: &str, type_: u32) -> FsUse {
    FsUse { behaviour, name: name.into(), context: context(type_) }
}

fn genfscon(name: &str, path: &str, type_: u32) -> GenFs {
    GenFs { name: name.into(), path: path.into(), class: 0, context: context(type_) }
}

/// The SID of a context is 100 and its type.
fn filesystems(policy: &Policy) -> Filesystems {
    of(policy, &mut |context| Ok::<_, ()>(100 + context.type_)).unwrap()
}

fn find(filesystems: &Filesystems, name: &str) -> Option<tg_filesystem> {
    let text =
        |text: &[i8]| -> String { text.iter().map(|c| c.cast_unsigned() as char).take_while(|c| *c != '\0').collect() };
    filesystems.filesystems.iter().find(|(key, _)| text(&key.text) == name).map(|(_, value)| *value)
}

fn names(found: &Filesystems, filesystem: &str, path: &str) -> u32 {
    let genfs = Genfs::new(&found.genfs);
    let filesystem = find(found, filesystem).unwrap();
    let (mut sid, mut node) = (filesystem.sid, filesystem.node);
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if let Some(found) = genfs.find(node, name.as_bytes()) {
            (sid, node) = (found.sid, found.node);
        }
    }
    sid
}

#[test]
fn numbers_behaviours_as_the_programs_do() {
    let policy = Policy {
        fs_uses: vec![fs_use(1, "ext4", 1), fs_use(2, "tmpfs", 2), fs_use(3, "pipefs", 3)],
        ..Policy::default()
    };
    let found = filesystems(&policy);
    for (name, behaviour, sid) in [("ext4", TG_FS_XATTR, 101), ("tmpfs", TG_FS_TRANS, 102), ("pipefs", TG_FS_TASK, 103)]
    {
        assert_eq!(find(&found, name), Some(tg_filesystem { behaviour, sid, node: 0, reserved: 0 }), "{name}");
    }
    assert_eq!((find(&found, "vfat"), found.unsupported.len()), (None, 0));
}

#[test]
fn sets_labels_only_where_selinux_does() {
    let plain = Policy::default();
    let able = Policy { capabilities: vec!["cgroup_seclabel".into()], ..Policy::default() };
    let by_policy = |policy: &Policy, name: &str| is_settable(policy, name, TG_FS_GENFS);
    assert!(["sysfs", "debugfs", "tracefs", "pstore", "rootfs"].iter().all(|name| by_policy(&plain, name)));
    assert!(!["proc", "vfat", "cgroup2", "functionfs", "anon_inodefs"].iter().any(|name| by_policy(&plain, name)));
    assert!(by_policy(&able, "cgroup2") && !by_policy(&able, "proc"));
    assert!([TG_FS_XATTR, TG_FS_TRANS, TG_FS_TASK].iter().all(|behaviour| is_settable(&plain, "proc", *behaviour)));
}

#[test]
fn labels_by_path_only_where_selinux_does() {
    let statements = ["proc", "sysfs", "vfat"].map(|name| [genfscon(name, "/", 1), genfscon(name, "/a", 2)]);
    let found = filesystems(&Policy { genfs: statements.concat(), ..Policy::default() });
    for (name, sid) in [("proc", 102), ("sysfs", 102), ("vfat", 101)] {
        let filesystem = find(&found, name).unwrap();
        assert_eq!((filesystem.behaviour, filesystem.sid), (TG_FS_GENFS, 101), "{name}");
        assert_eq!(names(&found, name, "/a/b"), sid, "{name}");
    }
    assert_eq!(find(&found, "vfat").unwrap().node, 0);
}

#[test]
fn keeps_what_enforcement_lives_by_whatever_the_policy_says_of_it() {
    let named = genfscon("proc", "/sys/kernel/ftrace_enabled", 2);
    let policies = [vec![], vec![genfscon("proc", "/", 1)], vec![genfscon("proc", "/", 1), named]];
    let sids = [SECINITSID_UNLABELED, 101, 102];
    for (genfs, sid) in policies.into_iter().zip(sids) {
        let found = filesystems(&Policy { genfs, ..Policy::default() });
        assert_eq!(names(&found, "proc", "/sys/kernel/ftrace_enabled"), sid | TG_SID_SURVIVAL);
        assert_eq!(names(&found, "proc", "/sys/kernel/hostname") & TG_SID_SURVIVAL, 0);
        assert_eq!(names(&found, "tracefs", "/kprobe_events"), SECINITSID_UNLABELED | TG_SID_SURVIVAL);
    }
}

#[test]
fn leaves_unlabelled_what_no_statement_names() {
    let genfs = vec![genfscon("sysfs", "/class", 2)];
    let found = filesystems(&Policy { genfs, ..Policy::default() });
    assert_eq!(find(&found, "sysfs").unwrap().sid, SECINITSID_UNLABELED);
    assert_eq!(names(&found, "sysfs", "/kernel"), SECINITSID_UNLABELED);
    assert_eq!(names(&found, "sysfs", "/class/net"), 102);
}

#[test]
fn asks_genfscon_only_where_there_is_no_fs_use() {
    let genfs = vec![genfscon("tmpfs", "/", 1), genfscon("proc", "/", 2)];
    let found = filesystems(&Policy { fs_uses: vec![fs_use(2, "tmpfs", 3)], genfs, ..Policy::default() });
    assert_eq!(find(&found, "tmpfs").map(|found| (found.behaviour, found.sid)), Some((TG_FS_TRANS, 103)));
    let named = |found: &Filesystems| found.filesystems.len();
    assert_eq!(named(&found), named(&filesystems(&Policy::default())) + 1);
    assert_eq!(find(&found, "proc").map(|found| (found.behaviour, found.sid)), Some((TG_FS_GENFS, 102)));
}

#[test]
fn gives_a_directory_the_same_node_in_every_policy_and_no_two_one() {
    let nodes = |paths: &[&str]| {
        let statements = ["proc", "sysfs"].map(|name| paths.iter().map(move |path| genfscon(name, path, 1)));
        let found = filesystems(&Policy { genfs: statements.into_iter().flatten().collect(), ..Policy::default() });
        let genfs = Genfs::new(&found.genfs);
        ["proc", "sysfs"].map(|name| {
            let root = find(&found, name).unwrap().node;
            let a = genfs.find(root, b"a").unwrap().node;
            [root, a, genfs.find(a, b"b").unwrap().node]
        })
    };
    let first = nodes(&["/", "/a/b"]);
    assert_eq!(first, nodes(&["/", "/0", "/a/b/c", "/a/b", "/z/y"]));
    let distinct: std::collections::HashSet<u32> = first.concat().into_iter().collect();
    assert!(distinct.len() == 6 && !distinct.contains(&0));
}

#[test]
fn numbers_directories_anew_when_two_would_have_one_number() {
    let (one, other) = collision();
    let policy = Policy { genfs: vec![genfscon("proc", &one, 1), genfscon("proc", &other, 2)], ..Policy::default() };
    let found = filesystems(&policy);
    assert_eq!([names(&found, "proc", &format!("{one}/x")), names(&found, "proc", &format!("{other}/x"))], [101, 102]);
}

/// Two paths whose nodes in proc would have one number.
fn collision() -> (String, String) {
    let root = super::root(0x811c_9dc5, "proc");
    let mut seen = std::collections::HashMap::new();
    for number in 0u32.. {
        let name = format!("n{number}");
        if let Some(other) = seen.insert(crate::labels::genfs::below_of(root, name.as_bytes()), name.clone()) {
            return (format!("/{other}"), format!("/{name}"));
        }
    }
    unreachable!("there are fewer numbers than names")
}

#[test]
fn tells_what_the_maps_cannot_say() {
    let long = "n".repeat(61);
    let policy = Policy {
        fs_uses: vec![fs_use(9, "ext4", 1), fs_use(1, &"f".repeat(32), 1)],
        genfs: vec![
            genfscon("proc", "/", 1),
            GenFs { class: 7, ..genfscon("proc", "/kmsg", 2) },
            genfscon("proc", &format!("/{long}"), 3),
        ],
        ..Policy::default()
    };
    let found = filesystems(&policy);
    assert_eq!(found.unsupported.len(), 4, "{:?}", found.unsupported);
    assert_eq!(names(&found, "proc", "/kmsg"), 101);
    assert_eq!(names(&found, "proc", &format!("/{long}")), 101);
}

#[test]
fn leaves_out_what_labels_nothing_under_selinux_either() {
    let genfs = vec![
        genfscon("selinuxfs", "/", 1),
        GenFs { class: 7, ..genfscon("selinuxfs", "/booleans/", 2) },
        genfscon("vfat", &"/n".repeat(90), 3),
    ];
    let found = filesystems(&Policy { genfs, ..Policy::default() });
    assert_eq!((names(&found, "selinuxfs", "/booleans/x"), found.unsupported), (101, Vec::new()));
}

#[test]
fn reads_patterns_as_the_prefixes_that_they_are_and_refuses_others() {
    let policy = Policy {
        capabilities: vec!["genfs_seclabel_wildcard".into()],
        genfs: vec![
            genfscon("sysfs", "/*", 1),
            genfscon("sysfs", "/class*", 2),
            genfscon("sysfs", "/devices/*/net*", 3),
            genfscon("sysfs", "/kernel", 4),
        ],
        ..Policy::default()
    };
    let found = filesystems(&policy);
    assert_eq!([names(&found, "sysfs", "/x"), names(&found, "sysfs", "/classes")], [101, 102]);
    assert_eq!(found.unsupported.len(), 2, "{:?}", found.unsupported);
}

#[test]
fn labels_functionfs_by_path_only_with_its_capability() {
    let genfs = vec![genfscon("functionfs", "/", 1), genfscon("functionfs", "/ep0", 2)];
    let without = Policy { genfs, ..Policy::default() };
    assert_eq!(names(&filesystems(&without), "functionfs", "/ep0"), 101);
    let with = Policy { capabilities: vec!["functionfs_seclabel".into()], ..without };
    assert_eq!(names(&filesystems(&with), "functionfs", "/ep0"), 102);
}

#[test]
fn stops_at_a_context_that_cannot_have_a_sid() {
    let policy = Policy { fs_uses: vec![fs_use(1, "ext4", 1)], ..Policy::default() };
    assert_eq!(of(&policy, &mut |_| Err("full")), Err("full"));
}
