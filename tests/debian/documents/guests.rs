//! A guest for each page.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tollgate_host::{Cache, Packages};

use super::{File, Known, Line, file, guides, lines, pages};
use crate::{
    debian::{
        guest::{Guest, copy},
        packages,
        system::services_image,
    },
    program::{Scratch, auditors::tools, word},
};

const PRELUDE: &str = include_str!("prelude.sh");
const WEB: &str = include_str!("web.py");
/// Packages that the reader's machine would fetch.
const FETCHED: [&str; 2] = ["selinux-policy-default/bookworm", "selinux-policy-mls/bookworm"];

/// Runs all lines of a page, and reports those that did not end as expected.
fn as_written(name: &str, more: &[(PathBuf, String)], scratch: &Scratch) {
    let page = pages().into_iter().find(|page| page.name == name).unwrap();
    let text = &guides()[name];
    let lines = lines(&page, text).unwrap();
    let package = packages::make(scratch, "0.1.0", "package").join("tollgate_0.1.0_amd64.deb");
    let script = scratch.file("script", &script(&page.before, &lines));
    let web = scratch.file("web.py", WEB);
    let mut guest = Guest::new(scratch, "6.1", "bpf").with(&script, "/root/script");
    guest = guest.with(&package, "/root/tollgate_0.1.0_amd64.deb").with(&web, "/root/web.py");
    for (number, File { first, path }) in page.file.iter().enumerate() {
        let written = scratch.file(&format!("file{number}"), &file(text, first).unwrap());
        guest = guest.with(&written, path);
    }
    for (host, path) in more {
        guest = guest.with(host, path);
    }
    let disk = copy(scratch, &services_image());
    let output = guest.run(&disk, &["/bin/bash", "/root/script"]);
    println!("{output}");
    let failed = failures(&output, &lines);
    let listed = lines.iter().filter(|(_, known)| known.never).count();
    println!("{name}: {} lines, {} run, {listed} listed, {} failed", lines.len(), lines.len() - listed, failed.len());
    assert!(failed.is_empty(), "{name}:\n{}", failed.join("\n"));
}

/// The guest's script.
fn script(before: &str, lines: &[(Line, Known)]) -> String {
    let mut script = format!("{PRELUDE}\nsystemctl is-system-running --wait\n{before}\n");
    for (Line { number, text }, known) in lines.iter().filter(|(_, known)| !known.never) {
        let command = format!("'{}'", text.replace('\'', r"'\''"));
        let how = if known.endless { "endless" } else { "plain" };
        script.push_str(&format!("{}\n", known.before));
        script.push_str(&match (&known.types, known.meanwhile.as_str()) {
            (Some(types), _) => format!("{{ {types}; }} | line {number} terminal {command}\n"),
            (None, "") => format!("line {number} {how} {command}\n"),
            (None, meanwhile) => format!("{{ {meanwhile}; }} &\nline {number} {how} {command}; wait\n"),
        });
    }
    script
}

/// The lines that did not end as expected, each with its output.
fn failures(output: &str, lines: &[(Line, Known)]) -> Vec<String> {
    let mut failed = Vec::new();
    for (Line { number, text }, known) in lines.iter().filter(|(_, known)| !known.never) {
        let begin = format!("@ {number}\n");
        let told = output.split_once(&begin).and_then(|(_, rest)| rest.split_once("\n@= "));
        let Some((printed, rest)) = told else {
            failed.push(format!("{number}: {text}: did not end"));
            continue;
        };
        let status = rest.lines().next().unwrap_or_default();
        if status != known.status.to_string() {
            failed.push(format!("{number}: {text}: {status} in place of {}:\n{printed}", known.status));
        }
    }
    failed
}

/// Debian's packages, from the cache or fetched, for the folder `/root/debs`.
fn fetched() -> Vec<(PathBuf, String)> {
    let cache = Cache::of_user().unwrap();
    let folder = cache.folder("documents/bookworm", |fresh| {
        Packages::new(&cache).update(false)?;
        let mut download = Command::new("apt-get");
        download.env("APT_CONFIG", cache.path("apt").join("apt.conf")).current_dir(fresh);
        let status = download.args(["-q", "download"]).args(FETCHED).status().unwrap();
        assert!(status.success(), "{download:?}");
        Ok::<(), tollgate_host::Error>(())
    });
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().split('_').next().unwrap().to_owned();
    let debs = crate::program::entries(&folder.unwrap());
    debs.into_iter().map(|path| (path.clone(), format!("/root/debs/{}.deb", name(&path)))).collect()
}

/// auditd and its neighbours, as their packages install them.
fn audit_tools(scratch: &Scratch) -> Vec<(PathBuf, String)> {
    let archive = scratch.path("tools.tar");
    scratch.finish(scratch.command("tar", &["-C", word(&tools()), "-cf", word(&archive), "."])).with(0);
    vec![(archive, "/root/tools.tar".into())]
}

#[test]
fn runs_the_quick_start_as_it_is_written() {
    as_written("quickstart.md", &[], &Scratch::new());
}

#[test]
fn runs_the_guide_of_enforcement_as_it_is_written() {
    as_written("enforcer.md", &[], &Scratch::new());
}

#[test]
fn runs_the_guide_of_confining_as_it_is_written() {
    as_written("confining.md", &[], &Scratch::new());
}

#[test]
fn runs_the_guide_of_services_as_it_is_written() {
    as_written("services.md", &[], &Scratch::new());
}

#[test]
fn runs_the_guide_of_learning_as_it_is_written() {
    as_written("learning.md", &[], &Scratch::new());
}

#[test]
fn runs_the_guide_of_the_audit_log_as_it_is_written() {
    let scratch = Scratch::new();
    as_written("audit.md", &audit_tools(&scratch), &scratch);
}

#[test]
fn runs_the_guide_of_policies_as_it_is_written() {
    as_written("policy.md", &fetched(), &Scratch::new());
}

#[test]
fn runs_the_guide_of_metrics_as_it_is_written() {
    as_written("metrics.md", &[], &Scratch::new());
}

#[test]
fn runs_the_guide_of_debian_as_it_is_written() {
    as_written("debian.md", &fetched(), &Scratch::new());
}
