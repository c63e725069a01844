//! No user exhausts what all need: a user whose share is used up is refused more, and no other user is.

use std::collections::BTreeMap;

use super::{
    acts::{compile, sources},
    guest,
};
use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    steps::{Guest, Step, source},
};

/// `A COMMAND...` as the attacker, a user who is not root, `S COMMAND...` with one of the attacker's subordinate uids, as a
/// setuid program has it; `B COMMAND...` as another user; `hold` and `held` begin and end a process that holds credentials
/// until then.
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

/// A guest with an ext4 at `/srv`, directories of two labels in it, and enforcement with this much room.
fn full<'s>(scratch: &'s Scratch, kernel: &'static str, image: &str, rooms: &str) -> Guest<'s> {
    let prepare = format!(
        "echo alice:x:1000:1000::/:/bin/sh >> /etc/passwd; echo alice:100000:65536 >> /etc/subuid; truncate -s {image} /image && mke2fs -q -t ext4 -O ^has_journal -i 2048 /image && \
         mkdir -p /srv && mount -o loop /image /srv; cd /srv; mkdir a b c d e tools more m s t u v; echo > m/read; cp m/read s; cp m/read u; cp m/read v; mkfifo /hold; echo > open; echo > secret; echo > d/plain; \
         chown 1000 d d/plain; chmod 777 . a b c d e tools more m s t u v; tollgate enforce /policy --audit-limit 10 {rooms} && \
         tollgate label set $(of tool) tools more t"
    );
    let guest = guest(scratch, kernel, &["creds", "fill", "user"]).names(NAMES).modules(&["loop"]);
    guest.with("/sbin/mke2fs".as_ref(), "/bin/mke2fs").step("start", &prepare)
}

/// How many places a holder has of a room, and its share.
fn holds(status: &Step, room: &str, holder: &str) -> Option<(u64, u64)> {
    let status = status.json();
    let mut of_room = status["shares"].as_array().unwrap().iter().filter(|held| held["room"] == room);
    let own = of_room.find(|held| held["holder"].as_str().unwrap().contains(holder))?;
    Some((own["held"].as_u64().unwrap(), own["share"].as_u64().unwrap()))
}

/// How many places alice, the attacker, has of a room, and her share.
fn alice(status: &Step, room: &str) -> Option<(u64, u64)> {
    holds(status, room, "alice")
}

#[test]
#[ignore = "takes long: make test-rest"]
fn refuses_a_user_above_his_share_and_nobody_else() {
    const ROOMS: &str = "--room credentials=1024 --room labels=2048 --room objects=1024";
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let steps = full(&scratch, kernel, "64M", ROOMS)
            // Names in directories of one label need no place.
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
            // For root, the domain that it has entered counts, not the one that it came from.
            .step("root's", "W /creds 1000 </hold >/taken & exec 9>/hold; sleep 4; tollgate status --json")
            .step("root's, refused", "cat /taken; held; sleep 1")
            .step("queues", "A /fill queues 1000; O /fill queues 20; B /fill queues 20; /fill queues 20")
            .step("subordinates", "S /fill queues 20")
            .step("uids", "W /fill uids 100 100010; B /fill queues 20")
            .step("noise", "A /fill opens 30000 /srv/secret & sleep 1; O cat /srv/secret; wait; dmesg | grep -c avc.*:other:")
            .step("told", "tollgate status; tollgate status --metrics | grep held")
            // Again, with less room than alice already uses.
            .step("again", "chown 100005 /srv/a/f1??; tollgate stop --force; tollgate enforce /policy --room labels=1024")
            .step("order", "tollgate label get /srv/secret /srv/open /srv/d/plain; echo 3 > /proc/sys/vm/drop_caches; A cat /srv/d/plain")
            .step("left", "tollgate status")
            // None of the new owner's files is left without its label.
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
    // Running processes of the attacker go on, but get no more credentials, and neither fork nor execute.
    let refused = steps["refused"].is(
        126,
        &[" credentials: Cannot allocate memory, fork: Cannot allocate memory\n", "cat: Cannot allocate memory\n"],
    );
    let some_of_his = |taken: &Step| {
        let got: u64 = taken.text.split_once(' ').unwrap().0.parse().unwrap();
        assert!((share - 8..share).contains(&got), "{got} of {share}");
    };
    some_of_his(refused);
    assert_eq!(refused.text.lines().count(), 2, "{}", refused.text);
    steps["go on"].is(0, &["0 failed"]);
    steps["ended"].is(0, &[]);
    let (held, _) = alice(&steps["given back"], "credentials").unwrap_or_default();
    assert!(held < 10, "{held}");
    assert!(
        matches!(holds(&steps["root's"], "credentials", ":worker:"), Some((126..=128, 128))),
        "{:?}",
        steps["root's"]
    );
    some_of_his(&steps["root's, refused"]);
    steps["queues"].is(0, &["20 queues: all\n20 queues: all\n20 queues: all"]);
    assert!(!steps["queues"].text.contains("1000 queues"), "{}", steps["queues"].text);
    steps["subordinates"].is(0, &["0 queues: "]);
    assert!(!steps["subordinates"].text.contains("20 queues"), "{}", steps["subordinates"].text);
    steps["uids"].is(0, &["0 uids: Cannot allocate memory\n20 queues: all"]);
    steps["noise"].is(0, &[]);
    steps["told"].is(0, &["labels: alice 256 of 256", "above a share of credentials", "above a share of labels 344"]);
    steps["told"].is(0, &["tollgate_held{room=\"labels\",holder=\"alice\"} 256"]);
    steps["again"].is(0, &[]);
    steps["order"].is(1, &[":secret:s0 /srv/secret", ":open:s0 /srv/open", "Permission denied"]);
    steps["left"].is(0, &["alice 128 of 128, files without label"]);
    assert!(!steps["left"].text.contains("user 100005"), "{}", steps["left"].text);
    steps["another's"].is(1, &[":unlabeled_t:", "Permission denied"]);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn refuses_what_becomes_anothers_above_his_share_and_kills_what_would_stay_root() {
    // While they stay: what happened to those that moved, which holders have most, and what a user whose share is used up can
    // do.
    const MOVES: &str = r#"
stay() { : >/moved; "$@" </hold >/moved 2>&1 & exec 9>/hold; until [ -s /moved ]; do sleep 1; done
  cat /moved; tollgate status --metrics | grep '^tollgate_held.room="credentials"'; A cat /srv/open; held; sleep 1; }
"#;
    // The holder of the share of 128, how many of 200 come, and how many of them are counted in it.
    const CASES: [(&str, &str, u32, u32); 4] = [
        ("/moves 200 uid 1000", "alice", 200, 128),
        ("/moves 200 exec $(at other)", ":other:", 64, 128),
        ("/moves 200 setcon $(at other)", ":other:", 128, 128),
        ("/full parent 200", ":worker:", 125, 128),
    ];
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let sources: Vec<_> = sources(&["lib"]).into_iter().chain([source("tests/attacks/moves.c")]).collect();
        let moves = compile(&scratch, "moves", &sources);
        let full_program = compile(&scratch, "full", &[source("tests/attacks/full.c")]);
        let guest = full(&scratch, kernel, "64M", "--room credentials=1024").names(MOVES);
        let guest = guest.with(&moves, "/moves").with(&full_program, "/full");
        let steps = (0..)
            .zip(CASES)
            .fold(guest, |guest, (case, (how, ..))| guest.step(&format!("{case}"), &format!("stay W {how}")));
        let steps = steps
            .step("ids", "W /full ids")
            .step("ids of a user", "A /full ids")
            .step("root", "/full root 1000; W /full root 1000")
            // On kernels since 6.18 a failed fork frees the storage of the forking process.
            .step("failed", "W /full fork sh -c 'tollgate ps | grep -F \"sh -c\"; tollgate mode permissive; cat /srv/secret'; tollgate mode")
            .run();
        for (case, (_, holder, come, held)) in (0..).zip(CASES) {
            check_moves(&steps[&format!("{case}")], holder, come, held);
        }
        assert!(steps["0"].text.contains("\ncat: Cannot allocate memory\n"), "{:?}", steps["0"]);
        steps["ids"].is(0, &["157: Cannot allocate memory", " children, 29 of 30 calls killed"]);
        steps["ids of a user"].is(0, &["157: Cannot allocate memory", " children, 20 of 30 calls killed"]);
        steps["failed"].is(0, &[":worker:", "\ncat: can't open '/srv/secret': Permission denied\n", "enforcing"]);
        assert!(!steps["failed"].text.contains("unconfined_t"), "{:?}", steps["failed"]);
        steps["root"].is(137, &["root again: done\nKilled"]);
    }
}

/// The first line is `N came, ..., N refused: WHY`.
fn check_moves(step: &Step, holder: &str, come: u32, most: u32) {
    let number = |line: &str, at: fn(&str) -> Option<&str>| at(line).and_then(|word| word.parse().ok());
    let came: Option<u32> = number(&step.text, |text| text.split(' ').next());
    assert!(came.is_some_and(|came| (come - 12..=come).contains(&came)), "{holder}: {}", step.text);
    assert!(step.text.contains("Cannot allocate memory"), "{holder}: {}", step.text);
    let held = step
        .text
        .lines()
        .find(|line| line.contains(holder))
        .and_then(|line| number(line, |line| line.rsplit(' ').next()));
    assert!(held.is_some_and(|held| (most - 12..=most).contains(&held)), "{holder}: {}", step.text);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn forgets_owners_of_files_that_are_no_more_and_believes_none_above_a_share() {
    // Files that the bystander's domain, or the machine, has opened, and whose owner is alice, who is confined otherwise.
    const OWNERS: &str = r#"
own() { uid=$1; shift; O /user $uid /owners open $1 tollgate run --context $(at worker) -- /owners set "$@"; }
itself() { "$@" sh -c 'exec /sigio $$'; echo "it ended with $?"; }
kept() { tollgate status --metrics | awk '/^tollgate_held.room="owners"/ { sum += $NF } END { print sum + 0 }'; }
forgotten() { for i in $(seq 90); do [ $(kept) -le 16 ] && return; sleep 1; done; kept; }
before() { /owners open 1100 sh -c 'until test -e /go; do sleep 1; done; exec tollgate run --context $0 -- /user 1000 /owners set 1100' \
  $(at worker) >/before 2>&1 & before=$!; sleep 2; }
"#;
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let guest = guest(&scratch, kernel, &["owners", "sigio", "user"]).names(NAMES).names(OWNERS);
        let steps = guest
            .step(
                "start",
                "before; echo alice:x:1000:1000::/:/bin/sh >> /etc/passwd; tollgate enforce /policy --room owners=1024",
            )
            .step("dead", "for i in $(seq 6); do own 1000 100; forgotten; done")
            .step("above", "own 1000 200 /end >/above & above=$!; until test -s /above; do sleep 1; done; cat /above; tollgate status")
            .step("his", "itself A; itself W /user 1000")
            .step("others", "itself B; itself O; itself O /user 1002; itself env; own 1001 100")
            .step("ended", "touch /end; wait $above; forgotten")
            // There are more files of the machine than the map has room for.
            .step("machine's", "touch /go; wait $before; cat /before; itself env; itself O")
            .step("failures", "forgotten; tollgate status; own 1001 100")
            .run();
        check_owners(&steps);
    }
}

fn check_owners(steps: &BTreeMap<String, Step>) {
    steps["start"].is(0, &[]);
    // Six hundred, one after another, in a share of 128.
    let dead = steps["dead"].is(0, &[]);
    assert_eq!(dead.text, "100 of 100 signals\n".repeat(6), "{}", dead.text);
    // The entry of a closed file stays if another file has its address, which few do.
    let come = |step: &Step| -> u64 { step.text.split(' ').next().unwrap().parse().unwrap() };
    let above = steps["above"].is(0, &[]);
    assert!((112..=128).contains(&come(above)), "{}", above.text);
    above.is(0, &[&format!("above a share of owners {}", 200 - come(above))]);
    let held = above.text.split_once("owners: alice ").and_then(|(_, rest)| rest.split_once(" of 128")).unwrap().0;
    assert!((come(above)..=128).contains(&held.parse().unwrap()), "{}", above.text);
    // None of the owners set by a holder with a full share is trusted, not even the opener itself; all others are.
    assert_eq!(steps["his"].text, "it ended with 0\n".repeat(2));
    assert_eq!(steps["others"].text, "Killed\nit ended with 137\n".repeat(4) + "100 of 100 signals\n");
    assert_eq!(steps["ended"].is(0, &[]).text, "");
    let machine =
        steps["machine's"].is(0, &[" of 1100 signals\nKilled\nit ended with 137\nKilled\nit ended with 137\n"]);
    assert!((1008..=1024).contains(&come(machine)), "{}", machine.text);
    let unknown = format!("who set a file's owner is not known {}", 1100 - come(machine));
    steps["failures"].is(0, &[&unknown, "100 of 100 signals"]);
}

/// Functions for the full attack: `in_domain N COMMAND...` runs a command in one of many domains, which differ in their
/// categories; `running NAME N` waits until this many processes have that name, `told` until each of these files has content;
/// `memory` prints what is used; `serves` begins what others do meanwhile, and `served` ends it. No shell may hold the pipe
/// that ends the holders of credentials.
#[cfg(feature = "long")]
const WHOLE: &str = r#"
in_domain() { range=$1; shift; tollgate run --context system_u:system_r:worker:s0-s15:c0.c$range -- /user "$@"; }
running() { until [ $(grep -slx $1 /proc/[0-9]*/comm | wc -l) -ge $2 ]; do sleep 1; done; }
told() { for one in "$@"; do until [ -s $one ]; do sleep 1; done; done; cat "$@"; }
uid() { echo $((1000 + $1 % 2 * (99000 + $1))); }
memory() { grep -E '^(MemFree|Slab|SUnreclaim|VmallocUsed|Percpu):' /proc/meminfo | tr -s ' \n' ' '; echo
  grep -E '^(kmalloc-64|kmalloc-96|cred_jar|filp|ext4_inode_cache|dentry) ' /proc/slabinfo | cut -c1-60
  echo "BPF maps: $(cat /proc/$(daemon)/fdinfo/* 2>/dev/null | awk '/^memlock:/ { sum += $2 } END { print int(sum / 1048576) }') MiB"; }
serves() { O /busy /srv/s /srv/t /end >/served 2>&1 & B /busy /srv/u /srv/t /end >/another 2>&1 & /busy /srv/m /srv/t /end >/machine 2>&1 &
  O /user 1002 /busy /srv/v /srv/t /end >/third 2>&1 & }
served() { echo > /end; for one in /served /another /machine /third; do until grep -q failed $one; do sleep 1; done; done; cat /served /another /machine /third; }
"#;

/// The full attack: a user tries to exhaust everything, with many domains and subordinate uids, while others go on. There is
/// room for fewer links than by default: the share is full sooner, and the user goes on trying.
#[cfg(feature = "long")]
#[test]
fn goes_on_for_others_while_a_user_takes_a_million_links_and_half_a_million_credentials() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let steps = full(&scratch, kernel, "1G", "--room labels=262144")
            .with(&super::program(&scratch, "busy"), "/busy")
            .names(WHOLE)
            .timeout(3600)
            .step(
                "before",
                "memory; for n in $(seq 10); do mkdir b$n tools$n; done; chmod 777 b* tools*; tollgate label set $(of tool) tools*; \
                 serves; sleep 5; O cat /srv/open && B cat /srv/open",
            )
            // A change of uid also takes a credential.
            .step("uids", "W /fill uids 30000 100000; B /fill queues 20")
            // The linking processes began before, because a holder with a full share of credentials cannot execute.
            .step(
                "credentials",
                "ulimit -n 524288; A /fill links 700000 /srv/d /srv/tools >/links1 2>&1 & S /fill links 100000 /srv/a /srv/tools >/links2 2>&1 & \
                 for n in $(seq 10); do in_domain $n $(uid $n) /fill links 20000 /srv/b$n /srv/tools$n >/links-$n 2>&1 & done; running fill 12; \
                 A /creds 300000 /go </hold >/taken1 2>&1 & S /creds 100000 /go </hold >/taken2 2>&1 & \
                 for n in $(seq 10); do in_domain $n $(uid $n) /creds 10000 /go </hold >/taken-$n 2>&1 & done; exec 9>/hold; running creds 12; \
                 touch /go; told /taken*; goes_on 5",
            )
            .step("credentials held", "memory; tollgate status --json")
            .step("links", "told /links*; goes_on 5")
            .step("held", "memory; tollgate status; tollgate status --metrics | grep held")
            .step("served", "served")
            .step("ended", "held; sleep 2; A cat /srv/open; memory")
            .run();
        check_whole(&steps);
    }
}

#[cfg(feature = "long")]
fn check_whole(steps: &BTreeMap<String, Step>) {
    for name in ["before", "held", "served", "ended"] {
        steps[name].is(0, &[]);
    }
    let got = |step: &Step, what: &str| -> (u64, u64) {
        let found: Vec<u64> = step
            .text
            .lines()
            .filter(|line| line.contains(what))
            .filter_map(|line| line.split(' ').next()?.parse().ok())
            .collect();
        (found.len() as u64, found.iter().sum())
    };
    // Twelve processes of the attacker tried half a million credentials; twelve a million links.
    let (tried, credentials) =
        got(steps["credentials"].is(0, &["\n0 failed\n"]), " credentials: Cannot allocate memory");
    assert!(tried >= 1 && (30_000..32_768).contains(&credentials), "{tried}: {credentials}");
    let (tried, links) = got(steps["links"].is(0, &["\n0 failed\n"]), " links: No space left on device");
    assert!(tried == 12 && links == 32_768, "{tried}: {links}");
    // All subordinate uids count in one share.
    steps["uids"].is(0, &["\n20 queues: all"]);
    let (_, uids) = got(&steps["uids"], " uids: ");
    assert_eq!(uids, 30_000);
    steps["held"].is(0, &["labels: alice 32768 of 32768", "tollgate_held{room=\"objects\",holder=\"alice\"} 30000"]);
    let served = &steps["served"].text;
    assert_eq!(served.lines().filter(|line| line.ends_with(": 0 failed")).count(), 4, "{served}");
}
