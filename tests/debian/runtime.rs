//! policies/debian/runtime.cil: type transitions by name for what systemd labels in `/run` by libselinux.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use tollgate_debian::{self as debian, Flavour, Modules};
use tollgate_enforcer::labels::file_contexts::{FileContexts, specifications};
use tollgate_host::Cache;
use tollgate_policy::{built::Built, model::Policy};

const FOLDER: &str = "/run/";
/// Domains that create directories, sockets and files for others there, with a label from libselinux.
const MAKERS: [&str; 2] = ["init_t", "systemd_tmpfiles_t"];
const HEAD: &str = "\
; Labels that systemd sets in /run by libselinux, which does nothing where SELinux is not enabled: each name of Debian's file_contexts there.
; Made from them: TOLLGATE_WRITE_DOCS=1 scripts/cargo test -p tollgate --test tests debian::runtime. What a policy has no type for is left out.
(typeattribute runtime_labeller)
(typeattributeset runtime_labeller (init_t systemd_tmpfiles_t))
";

/// Classes with the modes of their files.
const CLASSES: [(&str, &str, u32); 4] = [
    ("-d", "dir", libc::S_IFDIR),
    ("-s", "sock_file", libc::S_IFSOCK),
    ("-p", "fifo_file", libc::S_IFIFO),
    ("--", "file", libc::S_IFREG),
];

/// The path that an expression names, alone or with everything below it; `None`: it names many.
fn literal(expression: &str) -> Option<PathBuf> {
    let name = expression.strip_suffix("(/.*)?").unwrap_or(expression);
    let plain = name.replace("\\.", "");
    let is_plain = !plain.contains(['\\', '.', '*', '+', '?', '(', ')', '[', ']', '{', '}', '^', '$', '|', '%']);
    (is_plain && name.starts_with(FOLDER)).then(|| name.replace("\\.", ".").into())
}

/// The type of a path.
fn type_of(contexts: &FileContexts, path: &Path, mode: u32) -> Option<String> {
    Some(contexts.lookup(path, mode).unwrap()?.split(':').nth(2).unwrap().to_owned())
}

/// Whether the policy already determines the label of a domain's object of this name.
fn is_known(policy: &Policy, directory: &str, class: &str, name: &str) -> bool {
    let number = |name: &str| policy.types.iter().position(|own| own.name == name).map(|place| place as u32 + 1);
    let class = policy.classes.iter().position(|own| own.name == class).map(|place| place as u32 + 1);
    let makers: Vec<u32> = MAKERS.iter().filter_map(|maker| number(maker)).collect();
    policy.name_transitions.iter().any(|own| {
        own.name == name
            && (Some(own.target), Some(own.class)) == (number(directory), class)
            && makers.iter().any(|maker| own.sources.has(*maker))
    })
}

fn transitions(text: &str, policy: &Policy) -> String {
    let contexts = FileContexts::new(text).unwrap();
    let mut lines = BTreeSet::new();
    for specification in specifications(text) {
        let Some(path) = literal(specification.expression) else { continue };
        let (name, parent) = (path.file_name().unwrap().to_str().unwrap(), path.parent().unwrap());
        let Some(directory) = type_of(&contexts, parent, libc::S_IFDIR) else { continue };
        let kind = specification.text.split_whitespace().nth(1).unwrap();
        for (flag, class, mode) in CLASSES {
            // An expression for any kind of file means a service's directory.
            let meant = if kind.starts_with('-') { kind == flag } else { class == "dir" };
            let Some(own) = type_of(&contexts, &path, mode).filter(|own| meant && *own != directory) else { continue };
            if !is_known(policy, &directory, class, name) {
                lines.insert(format!("(typetransition runtime_labeller {directory} {class} \"{name}\" {own})"));
            }
        }
    }
    let numbered = lines.iter().enumerate();
    numbered.map(|(number, line)| format!("(optional runtime_{number} {line})\n")).collect()
}

#[test]
fn runtime_labels_are_those_of_debians_file_contexts() {
    let folder = debian::build(&Cache::of_user().unwrap(), Flavour::Default, Modules::Enabled).unwrap();
    let built = Built::open(&folder.join(debian::BUILT)).unwrap();
    let made = HEAD.to_owned() + &transitions(&built.file_contexts, &built.policy);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/debian/runtime.cil");
    if std::env::var_os("TOLLGATE_WRITE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(made.contains("var_run_t dir \"dbus\" system_dbusd_runtime_t") && made.lines().count() > 100, "{made}");
    assert_eq!(fs::read_to_string(&path).unwrap(), made, "file_contexts have changed: see its second line");
}
