//! Nobody uses up what all need: who has his share is refused more, and he alone.

use std::collections::BTreeMap;

use super::guest;
use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    steps::{Guest, Step},
};

/// `A COMMAND...` as the attacker, a user who is not root, `S COMMAND...` with a subordinate uid of his, as a setuid program has
/// it; `B COMMAND...` as another user; `hold` and `held` begin and end what holds credentials until then.
const NAMES: &str = "\
A() { W /user 1000 \"$@\"; }
B() { O /user 1001 \"$@\"; }
S() { W /user 100005 \"$@\"; }
held() { exec 9>&-; wait; }
goes_on() { failed=0; for i in $(seq $1); do
  O cat /srv/open >/dev/null || failed=$((failed + 1)); B cat /srv/open >/dev/null || failed=$((failed + 1))
  B sh -c \"n=/srv/e/\\$\\$; echo > \\$n; ln \\$n /srv/more\" || failed=$((failed + 1))
  cat /srv/open >/dev/null || failed=$((failed + 1)); done; echo \"$failed failed\"; }
";

/// A guest with an ext4 at `/srv`, directories of two labels in it, and enforcement with so much room.
fn full<'s>(scratch: &'s Scratch, kernel: &'static str, image: &str, rooms: &str) -> Guest<'s> {
    let prepare = format!(
        "echo alice:x:1000:1000::/:/bin/sh >> /etc/passwd; echo alice:100000:65536 >> /etc/subuid; truncate -s {image} /image && mke2fs -q -t ext4 -i 2048 /image && \
         mkdir -p /srv && mount -o loop /image /srv; cd /srv; mkdir a b c d e tools more; mkfifo /hold; echo > open; echo > secret; echo > d/plain; \
         chown 1000 d d/plain; chmod 777 . a b c d e tools more; tollgate enforce /policy --audit-limit 10 {rooms} && \
         tollgate label set $(of tool) tools more"
    );
    let guest = guest(scratch, kernel, &["creds", "fill", "user"]).names(NAMES).modules(&["loop"]);
    guest.with("/sbin/mke2fs".as_ref(), "/bin/mke2fs").step("start", &prepare)
}

/// How much alice, the attacker, holds of a room, of how much.
fn alice(status: &Step, room: &str) -> Option<(u64, u64)> {
    let status = status.json();
    let shares = status["shares"].as_array().unwrap();
    let own = shares.iter().find(|held| held["room"] == room && held["holder"] == "alice")?;
    Some((own["held"].as_u64().unwrap(), own["share"].as_u64().unwrap()))
}

#[test]
fn refuses_a_user_above_his_share_and_nobody_else() {
    const ROOMS: &str = "--room credentials=1024 --room labels=2048 --room objects=1024";
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let steps = full(&scratch, kernel, "64M", ROOMS)
            // Names in directories of one label need nothing.
            .step("names", "A /fill names 600 /srv/a; A /fill links 300 /srv/b /srv/c; A ln /srv/b/f1 /srv/a/third")
            .step("no labels", "tollgate status --json")
            .step(
                "relabelled",
                "tollgate label set $(of secret) /srv/c; sync; echo 3 > /proc/sys/vm/drop_caches; \
                 tollgate label get /srv/c /srv/b/f1 /srv/c/l1 /srv/c/l299",
            )
            .step("links", "A /fill links 600 /srv/a /srv/tools")
            .step("other links", "B /fill links 5 /srv/e /srv/more; O ln /srv/open /srv/tools/o && mv /srv/tools/o /srv/b/o")
            .step("label set", "touch /srv/b/new; tollgate label set $(of secret) /srv/b/new; tollgate label get /srv/b/new")
            .step("labels", "tollgate status --json")
            .step("credentials", "A /creds 1000 </hold >/taken & exec 9>/hold; sleep 4; tollgate status --json")
            .step("refused", "cat /taken; A cat /srv/open")
            .step("go on", "goes_on 5")
            .step("ended", "held; A cat /srv/open && sleep 1")
            .step("given back", "tollgate status --json")
            .step("messages", "A /fill messages 1000; O /fill messages 20; B /fill messages 20; /fill messages 20")
            .step("subordinates", "S /fill messages 20")
            .step("noise", "A /fill opens 30000 /srv/secret & sleep 1; O cat /srv/secret; wait; dmesg | grep -c avc.*:other:")
            .step("told", "tollgate status; tollgate status --metrics | grep held")
            // Once more, with less room than what alice has.
            .step("again", "chown 100005 /srv/a/f1??; tollgate stop --force; tollgate enforce /policy --room labels=1024")
            .step("order", "tollgate label get /srv/secret /srv/open /srv/d/plain; echo 3 > /proc/sys/vm/drop_caches; A cat /srv/d/plain")
            .step("left", "tollgate status")
            // Of the new owner's files none is left without its label.
            .step(
                "another's",
                "set -- $(tollgate label get /srv/tools/l* | grep :unlabeled_t: | head -n 1); chown 0 $2; \
                 echo 3 > /proc/sys/vm/drop_caches; tollgate label get $2; O cat $2",
            )
            .run();
        check(&steps);
    }
}

fn check(steps: &BTreeMap<String, Step>) {
    steps["start"].is(0, &[]);
    steps["names"].is(0, &["600 names: all", "300 links: all"]);
    assert_eq!(alice(&steps["no labels"], "labels"), None);
    steps["relabelled"]
        .is(0, &[":secret:s0 /srv/c\n", ":open:s0 /srv/b/f1", ":open:s0 /srv/c/l1\n", ":open:s0 /srv/c/l299"]);
    steps["links"].is(0, &["256 links: No space left on device"]);
    steps["other links"].is(0, &["5 links: all"]);
    steps["label set"].is(0, &[":secret:s0 /srv/b/new"]);
    assert_eq!(alice(&steps["labels"], "labels"), Some((256, 256)));
    let (held, share) = alice(&steps["credentials"], "credentials").unwrap();
    assert!(held >= share - 1 && share == 128, "{held} of {share}");
    assert!(steps["refused"].text.contains(" credentials: Cannot allocate memory"), "{}", steps["refused"].text);
    steps["go on"].is(0, &["0 failed"]);
    steps["ended"].is(0, &[]);
    let (held, _) = alice(&steps["given back"], "credentials").unwrap_or_default();
    assert!(held < 10, "{held}");
    steps["messages"].is(0, &["20 messages: all\n20 messages: all\n20 messages: all"]);
    assert!(!steps["messages"].text.contains("1000 messages"), "{}", steps["messages"].text);
    steps["subordinates"].is(0, &["0 messages: "]);
    assert!(!steps["subordinates"].text.contains("20 messages"), "{}", steps["subordinates"].text);
    steps["noise"].is(0, &[]);
    steps["told"].is(0, &["labels: alice 256 of 256", "above a share of credentials", "above a share of labels 344"]);
    steps["told"].is(0, &["tollgate_held{room=\"labels\",holder=\"alice\"} 256"]);
    steps["again"].is(0, &[]);
    steps["order"].is(1, &[":secret:s0 /srv/secret", ":open:s0 /srv/open", "Permission denied"]);
    steps["left"].is(0, &["alice 128 of 128, files without label"]);
    assert!(!steps["left"].text.contains("user 100005"), "{}", steps["left"].text);
    steps["another's"].is(1, &[":unlabeled_t:", "Permission denied"]);
}

/// The whole size of it: what a user does who wants all of it, and what becomes of the others meanwhile.
#[cfg(feature = "long")]
#[test]
fn goes_on_for_others_while_a_user_takes_a_million_links_and_half_a_million_credentials() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let memory = "sed -n '/MemFree\\|Slab\\|VmallocUsed\\|Percpu/p' /proc/meminfo | tr '\\n' ' '; \
                      grep -E '^(kmalloc-64|kmalloc-96|cred_jar|filp|ext4_inode_cache) ' /proc/slabinfo | cut -c1-60";
        let steps = full(&scratch, kernel, "1G", "")
            .patience(3600)
            .step("before", memory)
            .step(
                "attack",
                "ulimit -n 524288; A /creds 500000 </hold >/taken & exec 9>/hold; A /fill links 1000000 /srv/d /srv/tools >/links & links=$!; \
                 goes_on 20; wait $links; goes_on 20; cat /taken /links",
            )
            .step("after", memory)
            .step("status", "tollgate status; held")
            .run();
        for name in ["before", "attack", "after", "status"] {
            println!("{kernel}, {name}: {}", steps[name].is(0, &[]).text);
        }
        assert_eq!(
            steps["attack"].text.lines().filter(|line| *line == "0 failed").count(),
            2,
            "{}",
            steps["attack"].text
        );
        for refused in [" links: No space left on device", " credentials: Cannot allocate memory"] {
            assert!(steps["attack"].text.contains(refused), "{}", steps["attack"].text);
        }
    }
}
