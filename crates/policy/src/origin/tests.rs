use super::*;

fn origin(names: &[&str]) -> Origin {
    Origin::now(names.iter().map(|name| Source::new(*name, b"")).collect())
}

#[test]
fn tells_what_a_file_held_by_its_hash() {
    // FIPS 180-2, appendix B.1.
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(Source::new("abc.cil", b"abc"), Source { name: "abc.cil".into(), sha256: expected.into() });
}

#[test]
fn tells_few_files_by_name_and_many_by_their_number() {
    let few = origin(&["/etc/tollgate/policy.d/web.cil", "/etc/tollgate/policy.d/web.fc", "own.cil"]);
    assert_eq!(few.folders(), "/etc/tollgate/policy.d (web.cil web.fc), own.cil");
    let many = origin(&["/p/1.cil", "/p/2.cil", "/p/3.cil", "/p/4.cil", "/p/5.cil"]);
    assert_eq!(many.folders(), "/p (5 files)");
}

#[test]
fn is_written_and_read_again() {
    let mut written = origin(&["/p/1.cil"]);
    written.booleans.insert("tune".into(), true);
    assert_eq!(Origin::from_bytes(&Origin::to_bytes(Some(&written))).unwrap(), Some(written));
    assert_eq!(Origin::from_bytes(&Origin::to_bytes(None)).unwrap(), None);
    assert!(Origin::from_bytes(b"{").is_err());
}
