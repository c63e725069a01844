use super::*;
use crate::sepol::{self, Options, tests::small};

fn built() -> Built {
    Built::from_compiled(sepol::compile(&small(), &Options::default()).unwrap()).unwrap()
}

fn own(built: &mut Built) -> String {
    let mut server = built.server().unwrap();
    let text = built.file_contexts.split_whitespace().last().unwrap().to_owned();
    server.context(&text).unwrap();
    text
}

#[test]
fn appends_lines_whose_contexts_the_policy_permits() {
    let mut built = built();
    let (before, context) = (built.file_contexts.clone(), own(&mut built));
    let text = format!("# ours\n\n/b(/.*)? -d {context}\n/c {context}\n/d <<none>>\n");
    append(&mut built, &text).unwrap();
    assert_eq!(built.file_contexts, format!("{before}{text}"));
}

#[test]
fn refuses_lines_by_their_number_and_keeps_the_policy_as_it_is() {
    let mut built = built();
    let before = built.file_contexts.clone();
    let error = append(&mut built, "# none\n/b system_u:object_r:nobody_t:s0\n").unwrap_err().to_string();
    assert!(error.starts_with("line 2: ") && error.contains("nobody_t"), "{error}");
    assert!(append(&mut built, "/b\n").unwrap_err().to_string().starts_with("line 1: expected"));
    assert_eq!(built.file_contexts, before);
}

#[test]
fn means_the_dots_of_an_alias_and_of_its_path() {
    let text = "/etc/init\\.d u:r:a:s0\n/etc/init-d u:r:b:s0\n";
    let expected = format!("{text}/etc/rc\\.d u:r:a:s0\n");
    assert_eq!(with_aliases(text, "/etc/rc.d /etc/init.d"), expected);
}

#[test]
fn keeps_of_two_lines_for_the_same_paths_the_first() {
    let text = "/lib -- u:r:own:s0\n/usr/lib -- u:r:a:s0\n/usr/lib u:r:b:s0\n";
    let kinds = ["-d", "-l", "-c", "-b", "-p", "-s"].map(|kind| format!("/lib\t{kind}\tu:r:b:s0\n"));
    assert_eq!(with_aliases(text, "/lib /usr/lib"), format!("{text}{}", kinds.concat()));
}

#[test]
fn refuses_two_lines_of_a_text_that_contradict_each_other() {
    let mut built = built();
    let (before, context) = (built.file_contexts.clone(), own(&mut built));
    let text = format!("/x -d {context}\n# ours\n/x -- {context}\n/x <<none>>\n");
    let error = append(&mut built, &text).unwrap_err().to_string();
    let expected = format!("line 4: line 1 already labels `/x` as {context}, and this one labels it as <<none>>");
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(built.file_contexts, before);
}

#[test]
fn leaves_out_what_a_text_says_twice() {
    let mut built = built();
    let (before, context) = (built.file_contexts.clone(), own(&mut built));
    append(&mut built, &format!("/x -d {context}\n/y {context}\n/x {context}\n/y -- {context}\n# end")).unwrap();
    assert_eq!(built.file_contexts, format!("{before}/y {context}\n/x {context}\n# end\n"));
}

#[test]
fn reads_what_lies_beside_a_file_in_the_order_in_which_it_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file_contexts");
    let write = |suffix: &str, text: &str| std::fs::write(format!("{}{suffix}", path.display()), text).unwrap();
    assert_eq!(Files::read(&path).unwrap_err().0, path);
    let mut built = built();
    let (before, context) = (built.file_contexts.clone(), own(&mut built));
    write("", &format!("/usr/lib/a {context}\n/home/x {context}\n"));
    assert_eq!(Files::read(&path).unwrap().all().count(), 1);
    write(".homedirs", "/home/x -d <<none>>\n");
    write(".local", &format!("/home/x {context}\n"));
    write(".subs_dist", "/lib /usr/lib\n");
    write(".subs", "/own /lib\n");
    let files = Files::read(&path).unwrap();
    Files::put(std::slice::from_ref(&files), &mut built).unwrap();
    let expected = format!("/usr/lib/a {context}\n/home/x {context}\n/lib/a {context}\n/own/a {context}\n");
    assert_eq!(built.file_contexts, format!("{before}{expected}"));
    let names = files.all().map(|named| named.path.extension().map(|e| e.to_str().unwrap().to_owned()));
    let expected = [None, Some("homedirs"), Some("local"), Some("subs_dist"), Some("subs")];
    assert_eq!(names.collect::<Vec<_>>(), expected.map(|name| name.map(str::to_owned)));
    write(".local", "/home/x\n");
    let (path, cause) = Files::put(&[Files::read(&path).unwrap()], &mut built).unwrap_err();
    assert!(path.ends_with("file_contexts.local") && cause.to_string().starts_with("line 1: "), "{cause}");
}

#[test]
fn takes_the_place_of_lines_for_the_same_expression_and_kind() {
    let before = "# shipped\n/srv(/.*)? u:r:a:s0\n/srv/x -- u:r:a:s0\n/srv/x -d u:r:a:s0\n";
    assert_eq!(without(before, "/srv/x -- u:r:b:s0\n"), before.replace("/srv/x -- u:r:a:s0\n", ""));
    assert_eq!(without(before, "/srv/x u:r:b:s0\n"), "# shipped\n/srv(/.*)? u:r:a:s0\n");
    assert_eq!(without(before, "# /srv/x\n/srv/y u:r:b:s0\n"), before);
    // What is said of any kind holds for the other kinds.
    let left = without("/srv(/.*)?\tu:r:a:s0\n", "/srv(/.*)? -d u:r:b:s0\n/srv(/.*)? -- u:r:b:s0\n");
    assert_eq!(
        left,
        "/srv(/.*)?\t-l\tu:r:a:s0\n/srv(/.*)?\t-c\tu:r:a:s0\n/srv(/.*)?\t-b\tu:r:a:s0\n\
         /srv(/.*)?\t-p\tu:r:a:s0\n/srv(/.*)?\t-s\tu:r:a:s0\n"
    );
    assert_eq!(without("/srv/t <<none>>\n", "/srv/t -d u:r:b:s0\n").lines().next(), Some("/srv/t\t--\t<<none>>"));
}

#[test]
fn tells_lines_that_differ_however_they_are_written() {
    assert_eq!(difference("# a\n/a\tu:r:a:s0\n", "/a   u:r:a:s0\n"), None);
    let found = difference("/a u:r:a:s0\n/b -d u:r:a:s0\n", "/a u:r:b:s0\n/b -d u:r:a:s0\n/c <<none>>\n").unwrap();
    assert_eq!(found.removed, ["/a u:r:a:s0"]);
    assert_eq!(found.added, ["/a u:r:b:s0", "/c <<none>>"]);
}

#[test]
fn puts_one_line_in_and_takes_it_out() {
    let line = Line { expression: "/srv/x", kind: Some("--"), context: Some("u:r:a:s0") };
    let text = with("# ours\n", &line);
    assert_eq!(text, "# ours\n/srv/x -- u:r:a:s0\n");
    assert_eq!(with(&text, &Line { context: None, ..line }), "# ours\n/srv/x -- <<none>>\n");
    assert_eq!(without_line(&text, "/srv/x", Some("--")).as_deref(), Some("# ours\n"));
    assert_eq!([without_line(&text, "/srv/x", None), without_line(&text, "/srv/y", Some("--"))], [None, None]);
}
