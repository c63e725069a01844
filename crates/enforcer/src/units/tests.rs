use std::{fs, os::unix::fs::symlink};

use tempfile::TempDir;

use super::*;

const WEB: &str = "system_u:system_r:web_t:s0";

/// A load path of three directories, the first counts most.
fn places(files: &[(&str, &str)]) -> (TempDir, Places) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, text) in files {
        fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        fs::write(at(name), text).unwrap();
    }
    let places = Places { load: ["etc", "run", "usr"].map(at).to_vec(), local: at("units") };
    (folder, places)
}

fn contexts(places: &Places) -> Vec<(String, String)> {
    let table = Table::read(places);
    assert_eq!(table.messages, Vec::<String>::new());
    table.units.into_iter().map(|(name, setting)| (name.to_string(), setting.context)).collect()
}

fn service(context: &str) -> String {
    format!("[Unit]\nSELinuxContext=none\n[Service]\nExecStart=/x\nSELinuxContext={context}\n[Install]\n")
}

#[test]
fn takes_the_file_that_systemd_takes_and_its_drop_ins_in_their_order() {
    let (folder, places) = places(&[
        ("usr/web.service", &service("usr")),
        ("etc/web.service", &service(WEB)),
        ("usr/db.service", &service("usr")),
        ("usr/db.service.d/20.conf", &service("twenty")),
        ("run/db.service.d/10.conf", &service("ten")),
        ("etc/db.service.d/20.conf", &service("-etc's twenty")),
        ("usr/plain.service", "[Service]\nExecStart=/x\n"),
        ("usr/taken.service", &service("usr")),
        ("etc/taken.service.d/none.conf", "[Service]\nSELinuxContext=\n"),
        ("usr/all-of-it.service", "[Service]\n"),
        ("etc/all-.service.d/x.conf", &service("beginning")),
        ("usr/notes.txt", &service("no unit")),
    ]);
    symlink("/usr/lib/web.service", folder.path().join("usr/www.service")).unwrap();
    let all = [("all-of-it.service", "beginning"), ("db.service", "etc's twenty"), ("web.service", WEB)];
    assert_eq!(contexts(&places), all.map(|(name, context)| (name.to_owned(), context.to_owned())));
    let table = Table::read(&places);
    let (_, db) = table.units.iter().find(|(name, _)| name.to_string() == "db.service").unwrap();
    assert!(db.ignorable);
    assert_eq!(db.source, folder.path().join("etc/db.service.d/20.conf"));
}

#[test]
fn gives_drop_ins_of_an_alias_and_of_a_template_to_the_unit() {
    let (folder, places) = places(&[
        ("usr/ssh.service", "[Service]\n"),
        ("etc/sshd.service.d/x.conf", &service("alias")),
        ("usr/web@.service", &service(WEB)),
        ("etc/web@one.service.d/x.conf", &service("one")),
        ("etc/web@two.service", "[Service]\n"),
        ("etc/x@one.service", "[Service]\n"),
    ]);
    symlink("ssh.service", folder.path().join("etc/sshd.service")).unwrap();
    let all = [("ssh.service", "alias"), ("web@.service", WEB), ("web@one.service", "one"), ("web@two.service", "")];
    assert_eq!(contexts(&places), all.map(|(name, context)| (name.to_owned(), context.to_owned())));
}

#[test]
fn reads_lines_as_systemd_does() {
    let (_folder, places) = places(&[
        ("usr/one.service", "; SELinuxContext=x\n[Service]\n SELinuxContext = a%%b \\\n# SELinuxContext=c\n  d\n"),
        ("usr/two.service", "[Socket]\nSELinuxContext=x\n"),
        ("usr/two.socket", "[Socket]\nSELinuxContext=socket\n"),
        ("usr/three.service", "[Service]\nExecStart=/x \\\nSELinuxContext=no\n"),
    ]);
    let all = [("one.service", "a%b  d"), ("two.socket", "socket")];
    assert_eq!(contexts(&places), all.map(|(name, context)| (name.to_owned(), context.to_owned())));
}

#[test]
fn lets_the_local_file_count_more_and_changes_its_line_alone() {
    let (_folder, places) =
        places(&[("usr/web.service", &service("usr")), ("units", "# ours\n\nweb.service  first\ndb.service -x\n")]);
    let web: Name = "web.service".parse().unwrap();
    assert_eq!(contexts(&places)[1], ("web.service".into(), "first".into()));
    assert!(local::set(&places.local, &web, Some(WEB)).unwrap());
    assert!(!local::set(&places.local, &web, Some(WEB)).unwrap());
    assert_eq!(contexts(&places)[1], ("web.service".into(), WEB.into()));
    assert!(local::set(&places.local, &web, None).unwrap());
    assert_eq!(fs::read_to_string(&places.local).unwrap(), "# ours\n\ndb.service -x\n");
    assert_eq!(contexts(&places)[1], ("web.service".into(), "usr".into()));
}

#[test]
fn refuses_lines_and_names_that_are_none() {
    let (_folder, places) = places(&[("units", "web.service\n")]);
    assert!(Table::read(&places).messages[0].contains("units, line 1: a line is a unit and a context"));
    let long = format!("{}.service", "x".repeat(120));
    for name in
        ["web", ".service", "web.slice", "web.timer", "a b.service", "a/b.service", "@x.service", "w@.socket", &long]
    {
        assert!(name.parse::<Name>().is_err(), "{name}");
    }
}

#[test]
fn looks_names_up_as_systemd_names_cgroups() {
    let key = |name: &str| {
        let (key, flags) = name.parse::<Name>().unwrap().key();
        let text: Vec<u8> = key.name.iter().take(key.bits as usize / 8).map(|byte| *byte as u8).collect();
        (String::from_utf8(text).unwrap(), flags)
    };
    assert_eq!(key("web.service"), ("web.service\0".into(), 0));
    assert_eq!(key("web@one.service"), ("web@one.service\0".into(), 0));
    assert_eq!(key("web@.service"), ("web@".into(), tollgate_abi::enforcer::TG_UNIT_TEMPLATE));
    assert_eq!(key("cpu.service"), ("_cpu.service\0".into(), 0));
    assert_eq!(key("_x.service"), ("__x.service\0".into(), 0));
    assert_eq!(key(r"a\x2db.mount"), ("a\\x2db.mount\0".into(), 0));
}

#[test]
fn sees_what_changes_also_where_nothing_was() {
    let (folder, places) = places(&[("usr/web.service", &service(WEB))]);
    let mut units = Units::new(places);
    assert_eq!(units.read().units.len(), 1);
    let changed = |units: &mut Units| {
        std::thread::sleep(MIN_READ_INTERVAL);
        units.changed(true).map(|table| table.units.len())
    };
    assert_eq!(changed(&mut units), None);
    fs::create_dir_all(folder.path().join("etc")).unwrap();
    assert_eq!(changed(&mut units), Some(1));
    fs::create_dir_all(folder.path().join("etc/db.service.d")).unwrap();
    assert_eq!(changed(&mut units), Some(1));
    fs::write(folder.path().join("etc/db.service.d/x.conf"), service("db")).unwrap();
    assert_eq!(changed(&mut units), Some(2));
    fs::write(folder.path().join("units"), "x.service x\n").unwrap();
    assert_eq!(changed(&mut units), Some(3));
    fs::remove_file(folder.path().join("usr/web.service")).unwrap();
    assert_eq!(changed(&mut units), Some(2));
}
