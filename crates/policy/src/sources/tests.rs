use tempfile::tempdir;

use super::*;
use crate::sepol::tests::{SMALL, small};

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn refusal(paths: &[PathBuf]) -> String {
    let sources = read(paths);
    sources.and_then(|sources| sources.build(&Options::default())).unwrap_err().to_string()
}

fn image() -> Vec<u8> {
    sepol::compile(&small(), &Options::default()).unwrap().image
}

#[test]
fn reads_the_cil_of_a_folder_in_order_and_nothing_else() {
    let dir = tempdir().unwrap();
    write(dir.path(), "b.cil", b"(type b)");
    write(dir.path(), "a.cil", b"(type a)");
    write(dir.path(), "a.txt", b"not a policy");
    let Sources::Cil { files, modules: false } = read(&[dir.path().to_owned()]).unwrap() else { panic!() };
    let names: Vec<&str> = files.iter().map(|file| file.name.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["a.cil", "b.cil"]);
}

#[test]
fn gives_the_same_policy_from_cil_from_its_image_and_from_what_was_built() {
    let dir = tempdir().unwrap();
    let from_cil =
        read(&[write(dir.path(), "small.cil", SMALL.as_bytes())]).unwrap().build(&Options::default()).unwrap();
    let image = write(dir.path(), "policy.33", &from_cil.image);
    let from_image = read(&[image]).unwrap().build(&Options::default()).unwrap();
    let built = dir.path().join("built");
    from_cil.write(&built).unwrap();
    let again = read(&[built]).unwrap().build(&Options::default()).unwrap();
    assert_eq!(from_image.policy, from_cil.policy);
    assert_eq!(from_image.tables, from_cil.tables);
    assert!(from_image.lines.missing.is_some());
    assert_eq!(again.to_bytes(), from_cil.to_bytes());
    let named = |built: &Built| built.origin.as_ref().unwrap().sources[0].name.rsplit('/').next().unwrap().to_owned();
    assert_eq!([named(&from_cil), named(&from_image), named(&again)], ["small.cil", "policy.33", "small.cil"]);
}

#[test]
fn unpacks_what_bzip2_packed() {
    // `printf '(type one)\n' | bzip2` by bzip2 1.0.8.
    const PACKED: &[u8] = b"BZh91AY&SY\xf9\xfe\x19e\x00\x00\x01Q\x80\x00\x10@`\x02\x01\xc4  \x00\x22\x01\x89\xa1\x000\xcd\xbaE\x17\xcf\xc5\xdc\x91N\x14$>\x7f\x86Y@";
    let dir = tempdir().unwrap();
    let packed = write(dir.path(), "policy.bz2", PACKED);
    let Sources::Cil { files, .. } = read(std::slice::from_ref(&packed)).unwrap() else { panic!("no CIL") };
    assert_eq!(files[0].text, b"(type one)\n");
    fs::write(&packed, &PACKED[..PACKED.len() / 2]).unwrap();
    let error = refusal(&[packed]);
    assert!(error.contains("cannot unpack") && error.contains("policy.bz2"), "{error}");
}

#[test]
fn refuses_to_join_a_whole_policy_with_other_sources() {
    let dir = tempdir().unwrap();
    let image = write(dir.path(), "policy.33", &image());
    let cil = write(dir.path(), "more.cil", b"(type more)");
    let error = refusal(&[cil, image]);
    assert!(error.contains("policy.33 is a whole policy") && error.contains("name it alone"), "{error}");
}

#[test]
fn refuses_what_is_no_source_with_its_name() {
    let dir = tempdir().unwrap();
    let error = refusal(&[write(dir.path(), "program", b"\x7fELF\0\0")]);
    assert!(error.contains("program is neither CIL nor"), "{error}");
    let error = refusal(&[dir.path().join("absent.cil")]);
    assert!(error.contains("absent.cil") && error.contains("No such file"), "{error}");
    let empty = tempdir().unwrap();
    assert!(refusal(&[empty.path().to_owned()]).contains("has no *.cil"), "{error}");
    assert!(refusal(&[]).contains("no sources"));
    let error = refusal(&[write(dir.path(), "broken.pp", &PACKAGE.to_le_bytes())]);
    assert!(error.contains("broken.pp: cannot turn the module package into CIL"), "{error}");
}
