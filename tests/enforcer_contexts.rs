//! Contexts that come and go with policies.
//!
//! A file or process whose context the policy in force does not have is unlabelled, and has its context again once a policy
//! has it, after a boot as after a reload. QEMU, mke2fs and a kernel, from the cache or a network, are needed: without them
//! these tests fail, and say so.

use std::path::{Path, PathBuf};

use crate::{
    attacks::disk,
    program::{
        Scratch,
        machine::{build, own_parts, source},
        steps::Guest,
        word,
    },
};

/// A policy of tests/enforcer/policy.cil and more files, which labels `/srv` as type one.
fn policy(scratch: &Scratch, name: &str, more: &[&Path]) -> PathBuf {
    let mut files = [own_parts(), vec![source("tests/enforcer/policy.cil")]].concat();
    files.extend(more.iter().map(|path| path.to_path_buf()));
    let contexts =
        scratch.file("file_contexts", "/.* system_u:object_r:file_t:s0\n/srv(/.*)? system_u:object_r:one:s0\n");
    build(scratch, name, &files, &["--file-contexts", word(&contexts)])
}

#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_a_label_that_a_policy_without_its_type_hides() {
    let scratch = Scratch::new();
    let image = disk(&scratch, "ext4", 64);
    let more = scratch.file("more.cil", "(type hidden) (typeattributeset file_type hidden)\n");
    let (without, with) = (policy(&scratch, "without", &[]), policy(&scratch, "with", &[&more]));
    let get = "tollgate label get /srv/file; as visitor cat /srv/file";
    let gone = "until ! tollgate mode 2>/dev/null; do sleep 0.1; done";
    let steps = Guest::under(&scratch, "6.1", &without)
        .with(&with, "/with")
        .volume(&image)
        .step(
            "first",
            &format!(
                "mkdir -p /srv && mount /dev/vda /srv && echo text > /srv/file && tollgate enforce /with &&
                 tollgate label set $(of hidden) /srv/file; {get}; tollgate stop"
            ),
        )
        .step("boot without", &format!("tollgate enforce /policy; {get}"))
        .step("listed", "tollgate label lost")
        .step("explained", "sleep 1.2; tollgate explain --domain visitor")
        .step("set", "tollgate label set $(of hidden) /srv/file")
        .step("restored", "tollgate label restore -n /srv/file")
        .step("no domain", "tollgate mode permissive --domain nosuch_t")
        .step("nothing learnt", "tollgate learn --domain nosuch_t; tollgate learn --domain changer")
        .step("level", "mkdir /srv/dir; tollgate label set system_u:object_r:unlabeled_t:s15:c0.c1023 /srv/dir; touch /srv/dir/new; tollgate label get /srv/dir/new")
        .step("back", &format!("tollgate reload /with; {get}"))
        .step("away", &format!("tollgate reload /policy; kill -9 $(daemon); {gone}; tollgate enforce /policy; {get}"))
        .step("back again", &format!("tollgate reload /with; {get}"))
        .step(
            "asked",
            "tollgate shadow start /policy; echo late > /srv/late; tollgate label set system_u:object_r:hidden:s0-s1 /srv/late
             as visitor cat /srv/late; tollgate shadow report",
        )
        .run();
    steps["first"].is(0, &[":hidden:s0 /srv/file\ntext\n"]);
    let hidden = [":unlabeled_t:s15:c0.c1023 /srv/file\n", "Permission denied"];
    steps["boot without"]
        .is(1, &hidden)
        .is(1, &["tollgate: /policy, generation 1: enforcing, ", "1 have contexts that"]);
    steps["listed"].is(1, &["system_u:object_r:hidden:s0 /srv/file\n"]);
    let explained = &steps["explained"].is(1, &["the object is unlabelled: ", "  tollgate label restore "]).text;
    assert!(!explained.contains("mls_read_up"), "{explained}");
    steps["set"].is(2, &["the policy has no type `hidden`"]);
    steps["restored"].is(0, &[":unlabeled_t:s15:c0.c1023 -> system_u:object_r:one:s0 /srv/file\n"]);
    let refused = &steps["no domain"].is(2, &["the policy has no type `nosuch_t`", "tollgate reload POLICY"]).text;
    assert!(!refused.contains("unconfined"), "{refused}");
    steps["nothing learnt"].is(0, &["nor is it a domain", "no type `nosuch_t`", "tollgate ps --domain changer"]);
    // A level that a program has named.
    steps["level"].is(0, &[":unlabeled_t:s15-s15:c0.c1023 /srv/dir/new\n"]);
    for back in ["back", "back again"] {
        steps[back].is(0, &["is in force: /with, enforcing\n", ":hidden:s0 /srv/file\ntext\n"]);
    }
    steps["away"].is(1, &hidden);
    let asked = &steps["asked"].is(1, &["would deny ", ":hidden:s0-s1 file { "]).text;
    assert!(!asked.contains("not compared"), "{asked}");
}

#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_a_label_for_a_policy_to_come_only_for_who_has_mac_admin() {
    let scratch = Scratch::new();
    let image = disk(&scratch, "ext4", 64);
    let domain = |name: &str| {
        format!(
            "(type {name}) (typeattributeset subject {name}) (typeattributeset mls_upgrade {name})
             (typeattributeset mls_read_up {name}) (allow {name} everything (file (relabelfrom relabelto)))\n"
        )
    };
    let domains = format!("{}{}", domain("admin"), domain("other"));
    let more = scratch.file("more.cil", &format!("{domains}(allow admin self (capability2 (mac_admin)))\n"));
    let coming = scratch.file("coming.cil", "(type coming) (typeattributeset file_type coming)\n");
    let (before, after) = (policy(&scratch, "before", &[&more]), policy(&scratch, "after", &[&more, &coming]));
    let get = "as admin tollgate label get /srv/kept; as other tollgate label get /srv/kept";
    let steps = Guest::under(&scratch, "6.1", &before)
        .with(&after, "/after")
        .volume(&image)
        .step("start", "mkdir -p /srv && mount /dev/vda /srv && touch /srv/kept /srv/file && tollgate enforce /policy")
        .step("unconfined", "tollgate label set $(of coming) /srv/file")
        .step("other", "as other tollgate label set $(of coming) /srv/file")
        .step("audited", "sleep 1.2; tollgate audit | grep mac_admin")
        .step("no context", "as admin tollgate label set coming /srv/file")
        .step("kept", &format!("as admin tollgate label set $(of coming) /srv/kept && {get}"))
        .step("again", &format!("tollgate stop; tollgate enforce /policy; {get}"))
        .step("come", &format!("tollgate reload /after; {get}"))
        .run();
    steps["start"].is(0, &[]);
    for name in ["unconfined", "other"] {
        steps[name].is(2, &["the policy has no type `coming`"]);
    }
    steps["audited"].is(0, &["other:s0-s15:c0.c1023:capability2 { mac_admin }"]);
    steps["no context"].is(2, &[]);
    for name in ["kept", "again"] {
        steps[name].is(0, &[":coming:s0 /srv/kept\n", ":unlabeled_t:s15:c0.c1023 /srv/kept\n"]);
    }
    let come = steps["come"].is(0, &[]).text.matches(":coming:s0 /srv/kept\n").count();
    assert_eq!(come, 2, "{}", steps["come"].text);
}
