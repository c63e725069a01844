//! What the store keeps and refuses.

use super::*;
use crate::results::examples::{boot, failed, head, results};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn keeps_what_it_is_given() {
    let folder = folder();
    let store = Store::create(&folder.path().join("out"), "name = \"x\"").unwrap();
    let boots = [boot("none", 0).measured("stat", &[1.0, 2.5]), failed("tomoyo", "panic")];
    for boot in &boots {
        store.write_boot(&boot.0).unwrap();
    }
    assert_eq!(store.read_boots().unwrap(), boots.clone().map(|b| b.0));
    assert_eq!(store.read_environment().unwrap(), None);
    store.write_results(&results(&boots)).unwrap();
    let again = Store::open(&folder.path().join("out")).unwrap();
    assert_eq!(again.read_results().unwrap(), results(&boots));
    assert_eq!(again.read_environment().unwrap(), Some(results(&boots).environment));
    assert!(folder.path().join("out/samples/6.1/none.p0.json").is_file());
}

#[test]
fn replaces_a_record_and_leaves_nothing_beside_it() {
    let folder = folder();
    let store = Store::create(folder.path(), "").unwrap();
    store.write_boot(&failed("none", "panic").0).unwrap();
    store.write_boot(&boot("none", 0).0).unwrap();
    assert_eq!(store.read_boots().unwrap(), [boot("none", 0).0]);
    assert_eq!(fs::read_dir(folder.path().join("samples/6.1")).unwrap().count(), 1);
}

#[test]
fn names_rounds_and_given_images_apart() {
    assert_eq!(boot_name("6.1", "none", Counter::Instructions, 2), "6.1/none.p2");
    assert_eq!(boot_name("/boot/vmlinuz", "none", Counter::Wall, 0), "boot-vmlinuz/none.r0");
    assert_eq!(boot_name("../vmlinuz", "none", Counter::Wall, 0), "vmlinuz/none.r0");
}

#[test]
fn refuses_a_folder_with_output_unless_it_is_to_go_on_with_the_same_study() {
    let folder = folder();
    Store::resume(folder.path(), "one").unwrap();
    fs::create_dir(folder.path().join(SAMPLES)).unwrap();
    assert!(matches!(Store::create(folder.path(), "one"), Err(StoreError::Occupied { .. })));
    assert!(Store::resume(folder.path(), "one").is_ok());
    let other = Store::resume(folder.path(), "two").unwrap_err();
    assert!(matches!(other, StoreError::OtherStudy { .. }), "{other}");
}

#[test]
fn takes_a_folder_again_in_which_nothing_was_measured() {
    let folder = folder();
    Store::create(folder.path(), "one").unwrap();
    assert!(Store::create(folder.path(), "two").is_ok());
    assert!(Store::resume(folder.path(), "two").is_ok());
}

#[test]
fn reports_a_folder_without_results() {
    let error = Store::open(folder().path()).unwrap_err().to_string();
    assert!(error.contains("holds no results.json"), "{error}");
}

#[test]
fn reports_another_schema_and_who_wrote_it() {
    let folder = folder();
    let store = Store::create(folder.path(), "").unwrap();
    let text = r#"{"schema": 7, "environment": {"tollgate": "3.1.0"}}"#;
    fs::write(folder.path().join(RESULTS), text).unwrap();
    let error = store.read_results().unwrap_err().to_string();
    assert!(error.contains("has schema 7, written by tollgate 3.1.0"), "{error}");
    assert!(error.contains("reads schema 1"), "{error}");
}

#[test]
fn reports_a_broken_record_with_its_place_and_the_remedy() {
    let folder = folder();
    let store = Store::create(folder.path(), "").unwrap();
    store.write_boot(&boot("none", 0).0).unwrap();
    fs::write(folder.path().join("samples/6.1/none.p0.json"), "{\"schema\": 1,\n \"kernel\"").unwrap();
    let error = store.read_boots().unwrap_err().to_string();
    assert!(error.contains("none.p0.json") && error.contains("line 2") && error.contains("--resume"), "{error}");
}

/// `/dev/full` refuses every write with ENOSPC.
#[test]
fn reports_a_full_disk_and_the_remedy() {
    let folder = folder();
    let store = Store::create(folder.path(), "").unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("results.json.new")).unwrap();
    let error = store.write_results(&results(&[boot("none", 0)])).unwrap_err().to_string();
    assert!(error.contains("cannot write") && error.contains("make room"), "{error}");
}

#[test]
fn reports_a_folder_that_cannot_be_made() {
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    let error = Store::create(&folder.path().join("file/out"), "").unwrap_err().to_string();
    assert!(error.starts_with("cannot make"), "{error}");
}

/// The folder of a run that was started at one o'clock, with one record.
fn begun(folder: &tempfile::TempDir) -> Store {
    let store = Store::create(folder.path(), "").unwrap();
    store.write_boot(&boot("none", 0).0).unwrap();
    store.write_results(&results(&[boot("none", 0)])).unwrap();
    store
}

fn later() -> Head {
    Head { started: "2026-11-21T09:00:00Z".to_owned(), ..head(Counter::Instructions, &[boot("none", 0)]) }
}

#[test]
fn keeps_the_first_start_of_a_run_that_goes_on() {
    let folder = folder();
    let mut head = later();
    begun(&folder).go_on(&mut head).unwrap();
    assert_eq!(head.started, "2026-11-21T01:00:00Z");
}

#[test]
fn goes_on_in_an_empty_folder() {
    let folder = folder();
    let mut head = later();
    Store::resume(folder.path(), "").unwrap().go_on(&mut head).unwrap();
    assert_eq!(head, later());
}

#[test]
fn refuses_to_go_on_with_another_program_or_accelerator_and_says_which() {
    let folder = folder();
    let mut head = Head { accelerator: "kvm".to_owned(), ..later() };
    head.environment.qemu = Some("9.0".to_owned());
    let error = begun(&folder).go_on(&mut head).unwrap_err().to_string();
    assert!(error.contains("QEMU was not used and is 9.0; the accelerator was emulation and is kvm;"), "{error}");
    assert!(error.contains("another --out"), "{error}");
}

#[test]
fn refuses_to_go_on_with_records_of_unknown_make() {
    let folder = folder();
    let store = begun(&folder);
    fs::remove_file(folder.path().join(ENVIRONMENT)).unwrap();
    let error = store.go_on(&mut later()).unwrap_err();
    assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
}
