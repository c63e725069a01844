//! `tollgate learn` and `tollgate explain`: a service confined from one recorded run, and thousands of denials of Debian's
//! policies.
//!
//! QEMU, kernels and Debian's packages are needed: without them these tests fail, and say so.

use std::collections::{BTreeMap, BTreeSet};
#[cfg(feature = "long")]
use std::path::PathBuf;

#[cfg(feature = "long")]
use tollgate_audit::learn::{self, Apart};
use tollgate_audit::{Denial, Entry, text};
#[cfg(feature = "long")]
use tollgate_host::{Cache, Packages};
#[cfg(feature = "long")]
use tollgate_policy::{
    built::Built,
    explain::Explainer,
    model::{Policy, RuleKind},
    oracle::Oracle,
    sepol::Options,
    sources,
};

use crate::program::{
    Scratch,
    machine::{build, own_part, own_parts, policy, source},
    steps::{Guest, Step},
    word,
};

/// A web server that logs its starts, and what else it can do. All its processes run busybox.
const SERVICE: &str = "#!/bin/sh
echo started >> /srv/state/log || exit 3
case $1 in
extra) exec cat /srv/secret ;;
high) exec cat /srv/www/high ;;
esac
exec httpd -f -p 127.0.0.1:8080 -h /srv/www
";

/// `serve` starts it, fetches a page from it, and ends it.
const HELPERS: &str = "\
lines() { tollgate audit --json --domain service_t --since $since | grep -v '\"type\":\"lost\"'; }
now() { sleep 1.5; date -u +%Y-%m-%dT%H:%M:%SZ; }
serve() {
    /srv/service & service=$!
    for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.5; wget -q -O - http://127.0.0.1:8080/page && break; done
    kill $service; wait $service 2>/dev/null
    cat /srv/state/log
}";

const PLACES: &str = "\
ifconfig lo up; mkdir -p /srv; mount -t tmpfs none /srv; mkdir -p /srv/www /srv/state
cp /service /srv/service; chmod 755 /srv/service; echo hello >/srv/www/page; echo hidden >/srv/secret; : >/srv/state/log";

const LABELS: &str = "\
tollgate label set -R $(of page_t) /srv/www >/dev/null && tollgate label set -R $(of state_t) /srv/state >/dev/null &&
tollgate label set $(of secret_t) /srv/secret >/dev/null && tollgate label set $(of service_exec_t) /srv/service >/dev/null";

/// A rule's permission: source, target, class, permission.
type Grant = (String, String, String, String);

/// The grants of CIL `(allow SOURCE TARGET (CLASS (PERMISSION...)))`, one per line.
fn grants(cil: &str) -> BTreeSet<Grant> {
    let mut all = BTreeSet::new();
    for line in cil.lines().filter(|line| line.starts_with("(allow ")) {
        let words: Vec<&str> = line.split(['(', ')', ' ']).filter(|word| !word.is_empty()).collect();
        let [_, source, target, class, permissions @ ..] = &words[..] else { panic!("{line}") };
        let target = if *target == "self" { source } else { target };
        let grant = |permission: &&str| [*source, *target, *class, *permission].map(str::to_owned).into();
        all.extend(permissions.iter().map(grant));
    }
    all
}

/// The denied permissions, by types.
fn denied(json: &str) -> BTreeSet<Grant> {
    let entries = json.lines().filter(|line| line.starts_with('{')).map(|line| text::parse(line).unwrap());
    let avc = |entry: Entry| if let Entry::Avc(denial) = entry { Some(denial) } else { None };
    entries
        .filter_map(avc)
        .flat_map(|denial: Denial| {
            let kind = |context: &Option<String>| context.as_ref().unwrap().split(':').nth(2).unwrap().to_owned();
            let (source, target) = (kind(&denial.scontext), kind(&denial.tcontext));
            denial
                .permissions
                .into_iter()
                .map(move |permission| (source.clone(), target.clone(), denial.tclass.clone(), permission))
        })
        .collect()
}

/// Builds the policy of the service's guest; more sources follow.
const BUILD: &str = "tollgate policy build /cil";

/// A guest with the service, its policy `/first`, and that policy's sources in `/cil`.
fn service(scratch: &Scratch) -> Guest<'_> {
    let sources = [own_parts(), vec![own_part("60-network"), source("tests/policies/learn.cil")]].concat();
    let built = build(scratch, "policy-learn", &sources, &[]);
    let mut guest =
        Guest::new(scratch, "6.1").with(&scratch.file("service", SERVICE), "/service").with(&built, "/first");
    for (number, file) in sources.iter().enumerate() {
        guest = guest.with(file, &format!("/cil/{number}.cil"));
    }
    guest
}

/// The service does more than was learnt, and does it again with what `explain` offers: a missing rule, and a constraint in
/// the way.
fn mended(guest: Guest<'_>) -> Guest<'_> {
    guest
        .step("not seen", "/srv/service extra")
        .step("explained", "sleep 1; tollgate explain --domain service_t")
        .step(
            "mended",
            &format!(
                "for i in 1 2 3 4; do
                tollgate explain --domain service_t | sed -n 's/^  (allow/(allow/p' >>/more.cil
                {BUILD} /learnt.cil /more.cil -o /third >/dev/null && tollgate reload /third >/dev/null || break
                /srv/service extra 2>/dev/null && break; sleep 1
            done"
            ),
        )
        .step(
            "too high",
            "echo above >/srv/www/high; tollgate label set system_u:object_r:page_t:s3 /srv/www/high; /srv/service high",
        )
        .step("constraint", "sleep 1; tollgate explain --domain service_t")
        .step(
            "raised",
            &format!(
                "tollgate explain --domain service_t | sed -n 's/^ *(typeattributeset/(typeattributeset/p' >/constraint.cil
                {BUILD} /learnt.cil /more.cil /constraint.cil -o /fourth >/dev/null && tollgate reload /fourth >/dev/null
                cat /constraint.cil; /srv/service high"
            ),
        )
}

fn assert_mended(steps: &BTreeMap<String, Step>) {
    steps["not seen"].is(1, &["Permission denied"]);
    let expected = ["denied service_t secret_t:file { ", "no rule allows it", "that would let in service_t alone"];
    steps["explained"].is(1, &expected);
    steps["mended"].is(0, &["hidden\n"]);
    steps["too high"].is(1, &["Permission denied"]);
    let why = ["a constraint forbids it", "false  (dom l1 l2)  l1 is s0, l2 is s3"];
    steps["constraint"].is(1, &why);
    steps["raised"].is(0, &["(typeattributeset mls_read_up (service_t))\n", "above\n"]);
}

#[test]
fn confines_a_service_by_what_one_run_of_it_did() {
    let scratch = Scratch::new();
    let steps = service(&scratch)
        .step("places", &format!("{HELPERS}\n{PLACES}\ntollgate enforce /first && {LABELS}"))
        .step("may nothing", "serve")
        .step("noisy", "tollgate mode enforcing --domain service_t --if-quiet 1h")
        .step("permissive", "since=$(now); tollgate mode permissive --domain service_t && tollgate status")
        .step("metrics", "tollgate status --metrics")
        .step("recorded", "serve")
        .step("seen", "sleep 1.5; lines")
        .step("told", "/srv/service & sleep 2; tollgate ps --domain service_t; kill $!")
        .step("not quiet", "tollgate mode enforcing --domain service_t --if-quiet 1h; tollgate status | grep service_t")
        .step("learn", "tollgate learn --domain service_t --since $since -o /learnt.cil")
        .step("learnt", "cat /learnt.cil")
        .step("not over it", "tollgate learn --domain service_t --since $since -o /learnt.cil")
        .step("build", &format!("{BUILD} /learnt.cil -o /second"))
        .step("difference", "tollgate policy diff --running /second")
        .step("reload", "tollgate reload /second && tollgate status | grep permissive; since=$(now)")
        .step("enforced", "serve")
        .step(
            "denials",
            "sleep 1.5; lines | wc -l; tollgate mode enforcing --domain service_t --if-quiet 1s && echo quiet",
        );
    let steps = mended(steps).run();
    steps["places"].is(0, &[]);
    assert!(!steps["may nothing"].text.contains("hello"), "{}", steps["may nothing"].text);
    steps["noisy"].is(1, &["service_t was denied", "tollgate learn --domain service_t"]);
    steps["permissive"].is(0, &["service_t (for "]);
    steps["metrics"]
        .is(0, &["tollgate_permissive_start_time_seconds{domain=\"service_t\"} 1", "tollgate_enforcing 1\n"]);
    steps["recorded"].is(0, &["hello\n", "started\n"]);
    steps["told"].is(0, &["MODE", " permissive ", "httpd -f"]);
    steps["not quiet"].is(0, &["was denied", "permissive   service_t (for "]);
    steps["learn"].is(0, &[", each of which was denied"]);
    let learnt = grants(&steps["learnt"].is(0, &["/srv/www/page", "by httpd"]).text);
    let seen = denied(&steps["seen"].text);
    println!("{} permissions granted, {} seen", learnt.len(), seen.len());
    assert!(seen.len() > 20, "{seen:?}");
    let beside: BTreeSet<_> = learnt.difference(&seen).collect();
    assert!(seen.is_subset(&learnt) && beside.is_empty(), "granted and not seen: {beside:?}\n{}", steps["learnt"].text);
    steps["not over it"].is(2, &["is there already"]);
    steps["build"].is(0, &[]);
    let difference = &steps["difference"].is(1, &["service_t\n", "  + allow file { "]).text;
    assert!(!difference.contains("  - "), "{difference}");
    steps["reload"].is(0, &["permissive   none"]);
    steps["enforced"].is(0, &["hello\n", "started\nstarted\nstarted\n"]);
    steps["denials"].is(0, &["0\n", "quiet\n"]);
    assert_mended(&steps);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn says_that_a_recorded_run_is_not_whole_where_events_were_lost_and_learns_from_the_next() {
    let scratch = Scratch::new();
    let steps = service(&scratch)
        .step("places", &format!("{HELPERS}\n{PLACES}\ntollgate enforce /first --audit-limit 3 && {LABELS}"))
        .step("recorded", "since=$(now); tollgate mode permissive --domain service_t && serve; sleep 1.5")
        .step("part", "tollgate learn --domain service_t --since $since -o /part.cil")
        .step("counted", "cat /part.cil; tollgate status --json | sed -n 's/.*\"event above the limit\": *\\([0-9]*\\).*/limit \\1/p'")
        .step(
            "again",
            "kill -9 $(daemon); until ! tollgate mode 2>/dev/null; do sleep 0.1; done
             tollgate enforce /first --audit-limit 1000; : >/srv/state/log
             since=$(now); tollgate mode permissive --domain service_t && serve; sleep 1.5",
        )
        .step("whole", "tollgate learn --domain service_t --since $since -o /whole.cil")
        .step("learnt", "cat /whole.cil")
        .step("reload", &format!("{BUILD} /whole.cil -o /second && tollgate reload /second; since=$(now)"))
        .step("enforced", "serve")
        .step("denials", "sleep 1.5; lines | wc -l")
        .run();
    steps["places"].is(0, &[]);
    steps["recorded"].is(0, &["hello\n"]);
    let lost = steps["part"]
        .is(
            1,
            &["Events lost: ", "more than the kernel's programs may report in a second", "with a higher --audit-limit"],
        )
        .text
        .split_once("Events lost: ")
        .and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
    let counted = &steps["counted"].is(0, &["; Events lost: "]).text;
    assert_eq!(counted.lines().last(), Some(&*format!("limit {}", lost.unwrap())));
    steps["whole"].is(0, &[", each of which was denied"]);
    let [part, whole] = [counted, &steps["learnt"].text].map(|text| grants(text));
    println!("{} events lost: {} permissions learnt of {}", lost.unwrap(), part.len(), whole.len());
    assert!(part.is_subset(&whole) && part.len() < whole.len(), "{part:?}\n{whole:?}");
    steps["reload"].is(0, &[]);
    steps["enforced"].is(0, &["hello\n", "started\nstarted\n"]);
    steps["denials"].is(0, &["0\n"]);
}

/// Records of the kernel's audit, and one line that is no record.
const RECORDS: &str = "\
type=AVC msg=audit(1700000001.000:1): avc:  denied  { read open } for  pid=9 comm=\"httpd\" path=\"/srv/www/page\" dev=\"sda\" \
ino=5 scontext=system_u:system_r:service_t:s0 tcontext=system_u:object_r:page_t:s0 tclass=file permissive=1
type=SYSCALL msg=audit(1700000001.000:1): arch=c000003e syscall=257 success=yes
type=AVC msg=audit(1700000002.000:2): avc:  denied  { read } for  pid=9 comm=\"httpd\" path=\"/etc/shadow\" dev=\"sda\" \
ino=6 scontext=system_u:system_r:service_t:s0 tcontext=system_u:object_r:shadow_t:s0 tclass=file permissive=1
";

#[test]
fn learns_from_what_the_kernels_audit_says() {
    let scratch = Scratch::new();
    let parts = [own_part("60-network"), source("tests/policies/learn.cil")];
    let (built, log, out) =
        (policy(&scratch, "built", &parts), scratch.file("log", RECORDS), scratch.path("learnt.cil"));
    let learn = ["learn", "--from", word(&log), "--policy", word(&built)];
    let ended = scratch.run(&learn).with(1);
    assert!(ended.stdout.contains("\n(allow service_t page_t (file (open read)))\n"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("\n(allow service_t shadow_t"), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("no allow rule helps") && ended.stderr.contains("(neverallow service_t shadow_t"),
        "{}",
        ended.stderr
    );
    let since = ["--since", "2023-11-14T22:13:22Z"];
    scratch.run(&[&learn[..], &since].concat()).with(1);
    let until_then = [&learn[..], &["--domain", "unconfined_t", "-o", word(&out)]].concat();
    scratch.run(&until_then).with(0);
    let error = scratch.run(&until_then).with(2).stderr;
    assert!(error.contains("is there already"), "{error}");
    let explained = scratch.run(&[&["explain"], &learn[1..], &["-n", "2"]].concat()).with(1).stdout;
    let (first, second) = explained.split_once("\n\n").unwrap();
    assert!(
        first.contains("  (allow service_t page_t (file (open read)))\nthat would let in service_t alone"),
        "{first}"
    );
    assert!(second.contains("neverallow rules of the policy forbid this") && !second.contains("let in"), "{second}");
    let json = scratch.run(&[&["explain"], &learn[1..], &["--json"]].concat()).with(1).json();
    assert_eq!(json[0]["permissions"][0]["remedy"]["cil"][0], "(allow service_t shadow_t (file (read)))");
}

#[test]
fn says_what_to_do_where_nothing_is_enforced() {
    let scratch = Scratch::new();
    for command in [&["policy", "diff", "--running", "any"][..], &["learn"], &["learn", "--from", "/dev/null"]] {
        let error = scratch.run(command).with(2).stderr;
        assert!(
            error.contains("no policy is known to be in force") && error.contains("tollgate enforce POLICY"),
            "{error}"
        );
    }
    let page = scratch.run(&["status", "--metrics"]).with(1).stdout;
    assert!(page.contains("\ntollgate_daemon_up 0\n") && page.contains("\ntollgate_enforced 0\n"), "{page}");
}

/// How many denials of Debian's policy are generated.
#[cfg(feature = "long")]
const DENIALS: usize = 3000;

/// Denials of random domains on random objects, of permissions that a rule allows another domain; one permission each.
#[cfg(feature = "long")]
fn random_denials(policy: &Policy) -> Vec<Denial> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut below = |limit: usize| random.usize(..limit);
    let system = policy.roles.iter().find(|role| role.name == "system_r").unwrap();
    let domain = policy.types.iter().find(|t| t.attribute && t.name == "domain").unwrap();
    let domains: Vec<u32> = domain.set.iter().filter(|domain| system.types.has(*domain)).collect();
    let rules: Vec<_> = policy.rules.iter().filter(|rule| rule.kind == RuleKind::Allow).collect();
    let name = |number: u32| &policy.types[number as usize].name;
    let mut denials = Vec::new();
    while denials.len() < DENIALS {
        let (source, rule) = (domains[below(domains.len())], rules[below(rules.len())]);
        let class = &policy.classes[rule.class as usize];
        let target = &policy.types[rule.target as usize];
        let targets: Vec<u32> = if target.attribute { target.set.iter().collect() } else { vec![rule.target] };
        let permissions: Vec<usize> = (0..class.permissions.len()).filter(|bit| rule.data >> bit & 1 == 1).collect();
        if targets.is_empty() {
            continue;
        }
        let target = targets[below(targets.len())];
        let role = if domains.contains(&target) { "system_r" } else { "object_r" };
        // A process may not read objects of higher levels, and may not write those of lower levels.
        let levels = [("s0", "s0"), ("s0", "s3"), ("s3", "s0")][below(3)];
        let record = format!(
            "avc:  denied  {{ {} }} for  pid=1 comm=\"any\" scontext=system_u:system_r:{}:{} tcontext=system_u:{role}:{}:{} \
             tclass={} permissive=1",
            class.permissions[permissions[below(permissions.len())]],
            name(source),
            levels.0,
            name(target),
            levels.1,
            class.name
        );
        let Some(Entry::Avc(denial)) = text::parse(&record) else { panic!("{record}") };
        denials.push(denial);
    }
    denials
}

/// Debian's modules, unpacked, from which its policy is compiled.
#[cfg(feature = "long")]
fn modules(scratch: &Scratch) -> Vec<PathBuf> {
    let cache = Cache::of_user().unwrap();
    let root = scratch.path("root");
    std::fs::create_dir(&root).unwrap();
    Packages::new(&cache).unpack(&["selinux-policy-mls/bookworm"], &root).unwrap();
    let folder = std::fs::read_dir(root.join("usr/share/selinux/mls")).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".pp.bz2"));
    files
}

/// libsepol's verdict on each denial: allowed, and whether it would be audited.
#[cfg(feature = "long")]
fn answers(image: &[u8], policy: &Policy, denials: &[Denial]) -> Vec<(bool, bool)> {
    let mut oracle = Oracle::load(image).unwrap();
    let answer = |denial: &Denial| {
        let class = policy.classes.iter().position(|class| class.name == denial.tclass).unwrap();
        let permissions = &policy.classes[class].permissions;
        let bit = permissions.iter().position(|permission| *permission == denial.permissions[0]).unwrap();
        let mut sid = |context: &Option<String>| oracle.sid(context.as_ref().unwrap()).unwrap();
        let (source, target) = (sid(&denial.scontext), sid(&denial.tcontext));
        let access = oracle.access(source, target, class as u32);
        (access.allowed >> bit & 1 == 1, access.auditdeny >> bit & 1 == 1)
    };
    denials.iter().map(answer).collect()
}

#[cfg(feature = "long")]
fn is_of(apart: &Apart, denial: &Denial) -> bool {
    Some(&apart.source) == denial.scontext.as_ref()
        && Some(&apart.target) == denial.tcontext.as_ref()
        && apart.class == denial.tclass
        && apart.permissions.contains(&denial.permissions[0])
}

#[cfg(feature = "long")]
#[test]
fn learns_from_denials_of_debians_policy_and_what_it_offers_flips_each() {
    let scratch = Scratch::new();
    let out = scratch.path("debian");
    scratch.run(&["policy", "debian", "mls", "--all-modules", "-o", word(&out)]).with(0);
    let built = Built::open(&out).unwrap();
    let policy = &built.policy;
    let denials = random_denials(policy);
    let before = answers(&built.image, policy, &denials);
    let started = std::time::Instant::now();
    let learnt = learn::learn(&Explainer::new(policy, &built.lines), denials.iter().cloned().map(Entry::Avc));
    let seconds = started.elapsed().as_secs_f64();
    let is_apart = |denial: &Denial| learnt.apart.iter().any(|apart| is_of(apart, denial));
    let mut paths = modules(&scratch);
    paths.push(scratch.file("learnt.cil", &learnt.to_string()));
    let with = |more: &str| {
        let more = scratch.file("more.cil", more);
        let paths: Vec<PathBuf> = paths.iter().cloned().chain([more]).collect();
        let options = Options { without_lines: true, ..Options::default() };
        sources::read(&paths).unwrap().compile(&options).unwrap().unwrap().image
    };
    let after = answers(&with("; nothing\n"), policy, &denials);
    let (mut granted, mut apart, mut silent) = (0, 0, 0);
    for (denial, (before, after)) in denials.iter().zip(before.iter().zip(&after)) {
        match (before, is_apart(denial)) {
            ((true, _), _) => assert!(after.0, "{denial}"),
            ((false, _), true) => {
                apart += 1;
                assert!(!after.0, "no rule should have helped: {denial}");
            }
            ((false, false), false) => {
                silent += 1;
                assert!(!after.0, "not to be audited, so not to be learnt: {denial}");
            }
            ((false, true), false) => {
                granted += 1;
                assert!(after.0, "learnt, and yet denied: {denial}");
            }
        }
    }
    assert!(granted > DENIALS / 3 && apart > 20 && silent > 20, "{granted} {apart} {silent}");
    let cil: String = learnt.apart.iter().flat_map(|apart| &apart.cil).flat_map(|cil| [cil.as_str(), "\n"]).collect();
    let mended = answers(&with(&cil), policy, &denials);
    let flips = denials
        .iter()
        .zip(&mended)
        .filter(|(denial, _)| learnt.apart.iter().any(|apart| !apart.cil.is_empty() && is_of(apart, denial)));
    let (mut flipped, mut not) = (0, Vec::new());
    for (denial, answer) in flips {
        if answer.0 { flipped += 1 } else { not.push(denial) }
    }
    println!(
        "{DENIALS} denials in {seconds:.1} s: {granted} mended by {} rules, {apart} apart, of which {flipped} by what was \
         offered beside; {silent} left silent",
        learnt.rules.len()
    );
    assert!(not.is_empty() && flipped > 5, "{flipped}: {not:?}");
}
