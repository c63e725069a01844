//! Keys and signatures. openssl verifies what Tollgate signs, and signs what Tollgate verifies.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use crate::program::{Ended, Scratch, word};

/// It ended with a status, and its output has these words.
fn told(ended: Ended, code: i32, words: &[&str]) {
    let ended = ended.with(code);
    for word in words {
        assert!(ended.stdout.contains(word), "does not say {word:?}: {}", ended.stdout);
    }
}

/// The bytes of hexadecimal digits.
fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// The word at a place of the first line of a file.
fn word_of(path: &Path, place: usize) -> String {
    fs::read_to_string(path).unwrap().split_whitespace().nth(place).unwrap().to_owned()
}

/// The message that is signed for a file, as docs/signing.md has it.
fn message(scratch: &Scratch, file: &Path) -> Vec<u8> {
    let hash = openssl(scratch, &["dgst", "-sha256", "-binary", word(file)]);
    [&b"tollgate signature 1\n"[..], &hash].concat()
}

fn openssl(scratch: &Scratch, arguments: &[&str]) -> Vec<u8> {
    let ended = Command::new("openssl").args(arguments).current_dir(scratch.path("")).output();
    let ended = ended.expect("openssl is needed: install the package openssl");
    assert!(ended.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
    ended.stdout
}

/// A scratch folder with a file, a key, and the key's public half.
fn signed() -> Scratch {
    let scratch = Scratch::new();
    let (file, key) = (scratch.file("policy", "content"), scratch.path("key"));
    told(scratch.run(&["key", "new", word(&key), "--name", "release"]), 0, &["key.pub"]);
    told(scratch.run(&["key", "sign", word(&file), "--key", word(&key)]), 0, &["signed by release", "policy.sig"]);
    scratch
}

#[test]
fn agrees_with_openssl_on_who_has_signed() {
    let scratch = signed();
    let file = scratch.path("policy");
    // RFC 8410: what comes before the 32 bytes of a public key, and of a private one.
    let der = |head: &str, digits: &str| [bytes(head), bytes(digits)].concat();
    fs::write(scratch.path("public"), der("302a300506032b6570032100", &word_of(&scratch.path("key.pub"), 3))).unwrap();
    fs::write(scratch.path("message"), message(&scratch, &file)).unwrap();
    fs::write(scratch.path("signature"), bytes(&word_of(&scratch.path("policy.sig"), 3))).unwrap();
    let public = ["-pubin", "-keyform", "DER", "-inkey", "public"];
    let verify = ["pkeyutl", "-verify", "-rawin", "-in", "message", "-sigfile", "signature"];
    openssl(&scratch, &[&verify[..], &public].concat());

    fs::write(scratch.path("private"), der("302e020100300506032b657004220420", &word_of(&scratch.path("key"), 3)))
        .unwrap();
    let other = scratch.file("other", "another content");
    fs::write(scratch.path("message"), message(&scratch, &other)).unwrap();
    let private = ["-keyform", "DER", "-inkey", "private"];
    let signature = openssl(&scratch, &[&["pkeyutl", "-sign", "-rawin", "-in", "message"][..], &private].concat());
    let digits: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
    let line = format!("signature ed25519 {} {digits}\n", word_of(&scratch.path("key.pub"), 3));
    fs::write(scratch.path("other.sig"), line).unwrap();
    let trusted = scratch.path("key.pub");
    told(scratch.run(&["key", "verify", word(&other), "--trusted", word(&trusted)]), 0, &["signed by release"]);
}

#[test]
fn says_that_no_trusted_key_has_signed_what_was_changed_or_signed_by_another() {
    let scratch = signed();
    let (file, trusted) = (scratch.path("policy"), scratch.path("key.pub"));
    let verify = |more: &[&str]| scratch.run(&[&["key", "verify", word(&file)], more].concat());
    verify(&["--trusted", word(&trusted)]).with(0);
    let other = scratch.path("other");
    scratch.run(&["key", "new", word(&other)]).with(0);
    let another = scratch.path("other.pub");
    told(verify(&["--trusted", word(&another)]), 1, &["not signed by a trusted key", "other.pub"]);
    // Both have signed, so each of them is enough.
    scratch.run(&["key", "sign", word(&file), "--key", word(&other)]).with(0);
    told(verify(&["--trusted", word(&another)]), 0, &["signed by tollgate"]);
    told(verify(&["--trusted", word(&trusted)]), 0, &["signed by release"]);
    fs::write(&file, "Content").unwrap();
    told(verify(&["--trusted", word(&trusted)]), 1, &["of this content"]);
    fs::remove_file(scratch.path("policy.sig")).unwrap();
    told(verify(&["--trusted", word(&trusted)]), 1, &["there is no signature"]);
}

#[test]
fn refuses_keys_that_others_know_or_that_are_none() {
    let scratch = signed();
    let (file, key, public) = (scratch.path("policy"), scratch.path("key"), scratch.path("key.pub"));
    let sign = |key: &Path| scratch.run(&["key", "sign", word(&file), "--key", word(key)]);
    scratch.run(&["key", "new", word(&key)]).refused(&["exists", "never overwritten"]);
    scratch.run(&["key", "new", word(&scratch.path("k")), "--name", "a b"]).refused(&["a b", "letters, digits"]);
    sign(&public).refused(&["only verifies"]);
    sign(&scratch.path("none")).refused(&["none", "tollgate key new"]);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    sign(&key).refused(&["mode 644", "chmod 600"]);
    let verify = |trusted: &Path| scratch.run(&["key", "verify", word(&file), "--trusted", word(trusted)]);
    verify(&key).refused(&["key:1", "public key"]);
    verify(&file).refused(&["policy:1", "public ed25519 NAME"]);
    let none = scratch.path("none");
    let named = ["key", "verify", word(&file), "--trusted", word(&public), "--signatures", word(&none)];
    scratch.run(&named).refused(&["none", "tollgate key sign"]);
    fs::write(scratch.path("policy.sig"), "signature ed25519 00 00\n").unwrap();
    verify(&public).refused(&["policy.sig:1", "sign the file again"]);
}
