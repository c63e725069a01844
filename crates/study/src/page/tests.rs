use super::*;
use crate::{
    page::material::{Counts, Graph},
    results::examples::{boot, results},
};

#[test]
fn escapes_every_text_that_comes_from_outside() {
    let hostile = "</script><script>alert(1)</script>\"'&";
    let mut built = results(&[boot("none", 0).measured("stat", &[1.0]), boot("a<b", 0).broken("x<y", hostile)]);
    built.study.title = hostile.to_owned();
    built.study.text = hostile.to_owned();
    let text = html(&Material::of(built.clone()));
    assert!(!text.contains("<script>alert") && !text.contains("a<b") && !text.contains("x<y"));
    assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;"));
}

#[test]
fn writes_the_same_page_of_the_same_results() {
    let built = results(&[boot("none", 0).measured("stat", &[1.0]), boot("yama", 0).measured("stat", &[2.0])]);
    assert_eq!(html(&Material::of(built.clone())), html(&Material::of(built.clone())));
}

#[test]
fn says_so_where_nothing_has_been_measured_yet() {
    let mut built = results(&[boot("none", 0)]);
    built.configurations.clear();
    let page = page(&Material::of(built.clone()));
    assert_eq!(page.sections.len(), 1);
    assert!(html(&Material::of(built.clone())).contains("Nothing has been measured yet."));
}

#[test]
fn shows_counts_and_graphs_where_the_folder_has_them() {
    let mut material = Material::of(results(&[boot("none", 0).measured("stat", &[1.0])]));
    let counts = r#"{ "kernel": "6.1", "workload": "stat", "calls": [
        { "call": "newfstatat", "count": 1, "hooks": { "inode_getattr": 1 } } ] }"#;
    let graph = r#"{ "kernel": "6.1", "syscalls": [{ "syscall": "stat", "hooks": [{ "hook": "inode_getattr",
        "direct": true, "depth": 2, "path": [{ "function": "__x64_sys_stat" }, { "function": "vfs_getattr" },
        { "function": "security_inode_getattr" }] }] }] }"#;
    material.counts = vec![serde_json::from_str::<Counts>(counts).unwrap()];
    material.graphs = vec![serde_json::from_str::<Graph>(graph).unwrap()];
    let ids: Vec<&str> = page(&material).sections.iter().map(|section| section.id).collect();
    assert_eq!(ids, ["measured", "overhead", "counts", "reach"]);
    let text = html(&material);
    assert!(text.contains("<summary>vfs_getattr</summary><ul><li><strong>inode_getattr</strong>"), "{text}");
    assert!(text.contains("<td class=w>inode_getattr 1"), "{text}");
}

/// The widest study is studies/modules.toml.
#[test]
fn keeps_a_page_of_the_widest_study_below_two_megabytes() {
    let modules = [
        "none",
        "capability",
        "bpf",
        "bpf-empty",
        "selinux-nopolicy",
        "selinux-permissive",
        "selinux-enforcing",
        "apparmor",
        "apparmor-confined",
        "tomoyo",
        "tomoyo-learnt",
        "landlock",
        "lockdown",
        "yama",
    ];
    let mut boots = Vec::new();
    for kernel in ["5.10", "6.1", "6.12", "6.18", "7.2"] {
        for (i, module) in (0..).zip(modules) {
            let dearer = |n: u32| f64::from(4000 + n + i * 37);
            let all = tollgate_bench::selection::expand("@all", &[]).unwrap();
            let paths = all.iter().filter(|s| s.workload.scope == tollgate_bench::workload::Scope::Path);
            let mut own = boot(module, 0).on(kernel);
            for (selection, depth) in paths.flat_map(|s| (1..=10).map(move |depth| (s, depth))) {
                for fs in ["", ":ext4"] {
                    own = own.measured(&format!("{}{fs}:d{depth}", selection.workload.name), &[dearer(depth * i)]);
                }
            }
            for selection in all.iter().filter(|s| s.workload.scope != tollgate_bench::workload::Scope::Path) {
                own = own.measured(selection.workload.name, &[dearer(i)]);
            }
            boots.push(own);
        }
    }
    let length = html(&Material::of(results(&boots))).len();
    assert!(length < 2_000_000, "{length} bytes");
}
