//! Policies that others have made: upstream's reference policy with all its modules, built from its source, and the binary
//! policies that TOLLGATE_POLICIES names, such as Fedora's or Android's. And tables of sizes that no known policy has.
//!
//! QEMU, kernels and Debian's packages are needed, from the cache or a network: without them these tests fail, and say so.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use tollgate_abi::CLASSES;
use tollgate_host::{Cache, Packages, process};

use crate::{
    policy_decisions::agrees,
    program::{
        Scratch, machine, report,
        steps::{Guest, Step, source},
        word,
    },
};

/// The source, and what its build needs beside make, awk and sed.
const PACKAGES: [&str; 12] = [
    "selinux-policy-src",
    "checkpolicy",
    "m4",
    "libsigsegv2",
    "python3.11-minimal",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libexpat1",
    "zstd",
    "liblz4-1",
    "liblzma5",
    "zlib1g",
];

/// Paths of binary policies, separated by colons.
const OTHERS: &str = "TOLLGATE_POLICIES";

/// The folder of upstream's policy of a type: built, or from the cache.
fn upstream(kind: &str) -> PathBuf {
    let cache = Cache::of_user().unwrap();
    let made = cache.folder(&format!("policies/upstream-1/{kind}"), |fresh| {
        let packages = fresh.join("packages");
        fs::create_dir(&packages).unwrap();
        let names = PACKAGES.map(|name| format!("{name}/bookworm"));
        Packages::new(&cache).unpack(&names.each_ref().map(String::as_str), &packages)?;
        let build = fresh.join("build");
        fs::create_dir(&build).unwrap();
        let mut shell = std::process::Command::new("sh");
        shell.arg(fs::canonicalize(source("tests/policies/upstream.sh")).unwrap()).args([kind, word(&packages)]);
        let built = process::output(shell.current_dir(&build), cache.limits())?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        for name in ["policy.33", "file_contexts"] {
            fs::rename(build.join(name), fresh.join(name)).unwrap();
        }
        fs::remove_dir_all(&packages).and_then(|()| fs::remove_dir_all(&build)).unwrap();
        Ok::<_, tollgate_host::Error>(())
    });
    made.unwrap()
}

/// Builds a binary policy, and prints the size of its tables beside its own.
fn build(scratch: &Scratch, name: &str, image: &Path, more: &[&str]) -> PathBuf {
    let out = scratch.path(name);
    let arguments = [&["policy", "build", word(image), "-o", word(&out), "--json"], more].concat();
    let built = scratch.run(&arguments).with(0).json();
    let [image, tables] = ["image_bytes", "tables_bytes"].map(|size| built[size].as_u64().unwrap());
    let figure = format!("{tables} bytes, of {} rules; the binary policy {image} bytes", built["rules"]);
    report(&format!("decision tables of {name}"), &figure, "at most 4 MiB", tables <= 4 << 20);
    out
}

/// The steps of a guest that starts with this policy, and compares its evaluator in BPF with the one on the host.
fn in_force<'s>(scratch: &'s Scratch, built: &Path, options: &str) -> Guest<'s> {
    let verify = "tollgate policy verify /policy --against bpf --decisions 20000";
    Guest::under(scratch, "6.1", built)
        .step("in bpf", verify)
        .step("enforce", &format!("tollgate enforce /policy --accept-missing {options}"))
        .step("status", "tollgate status --json")
}

/// Fails unless the policy is in force, and no program has failed.
fn is_in_force(steps: &BTreeMap<String, Step>) {
    steps["in bpf"].is(0, &[]);
    steps["enforce"].is(0, &[]);
    let status = steps["status"].json();
    assert_eq!((&status["mode"], &status["policy"]), (&"enforcing".into(), &"/policy".into()), "{status}");
    assert_eq!(status["failures"].as_object().unwrap().len(), 0, "{status}");
}

/// What upstream's policies say of a web server and its files, by real acts of a process in its domain.
fn confines_as_upstream_says(kind: &str) {
    let scratch = Scratch::new();
    let folder = upstream(kind);
    let name = format!("upstream {kind}");
    let built =
        build(&scratch, &name, &folder.join("policy.33"), &["--file-contexts", word(&folder.join("file_contexts"))]);
    agrees(&scratch, &name, &built);

    let label = "tollgate label set system_u:object_r";
    // A web server may use the descriptors of the scripts that start services.
    let steps = in_force(&scratch, &built, "--machine system_u:system_r:initrc_t:s0")
        .names("web() { tollgate run --context system_u:system_r:httpd_t:s0 -- /d/busybox sh -c \"$1\" </dev/null >/dev/null 2>&1; }\n")
        .step("make", "mkdir /d && echo page >/d/page && echo secret >/d/secret && cp /bin/busybox /d/busybox && chmod 666 /d/[ps]*")
        .step("label", &format!("{label}:httpd_sys_content_t:s0 /d /d/page && {label}:shadow_t:s0 /d/secret"))
        .step("program", &format!("{label}:httpd_exec_t:s0 /d/busybox"))
        .step("by path", "mkdir -p /srv/www && tollgate label restore /srv/www && tollgate label get /srv/www")
        .step("reads its page", "web 'read line </d/page'")
        .step("does not write it", "web 'echo x >/d/page'")
        .step("does not read a secret", "web 'read line </d/secret'")
        .step("says so", "sleep 3; tollgate audit; cat /d/page")
        .run();
    is_in_force(&steps);
    for done in ["make", "label", "program", "reads its page"] {
        steps[done].is(0, &[]);
    }
    steps["by path"].is(0, &["httpd_sys_content_t"]);
    steps["does not write it"].is(1, &[]);
    steps["does not read a secret"].is(1, &[]);
    steps["says so"].is(0, &["httpd_t", "shadow_t", "page"]);
}

#[test]
#[ignore = "builds the policy from source: make test-rest"]
fn decides_by_upstreams_mls_policy_with_all_modules() {
    confines_as_upstream_says("mls");
}

#[test]
#[ignore = "builds the policy from source: make test-rest"]
fn decides_by_upstreams_mcs_policy_with_all_modules() {
    confines_as_upstream_says("mcs");
}

/// Without any named, there is nothing to show.
#[test]
#[ignore = "a guest for each policy: make test-rest"]
fn decides_by_binary_policies_that_are_given() {
    let scratch = Scratch::new();
    let Some(given) = env::var_os(OTHERS) else {
        println!("{OTHERS} names no policies");
        return;
    };
    for (number, image) in env::split_paths(&given).enumerate() {
        let name = format!("{number} {}", image.file_name().unwrap_or_default().to_string_lossy());
        let built = build(&scratch, &name, &image, &[]);
        agrees(&scratch, &name, &built);
        is_in_force(&in_force(&scratch, &built, "").named(&format!("script{number}")).run());
    }
}

/// Rules of so many types on themselves, one for each class: each has a place of its own in the tables.
fn large(scratch: &Scratch, types: usize) -> PathBuf {
    let names: Vec<String> = (0..types).map(|number| format!("large_{number}")).collect();
    let mut text: String = names.iter().map(|name| format!("(type {name})\n")).collect();
    text += &format!("(typeattribute large)\n(typeattributeset large ({}))\n", names.join(" "));
    let known = fs::read_to_string(machine::own_part("10-classes")).unwrap();
    for class in CLASSES.iter().filter(|class| known.contains(&format!("(class {} ", class.name))) {
        text += &format!("(allow large self ({} ({})))\n", class.name, class.permissions[0]);
    }
    let file = scratch.file("large.cil", &text);
    machine::policy(scratch, "large", &[source("tests/enforcer/policy.cil"), file])
}

/// The size of a built policy's tables.
fn tables_of(scratch: &Scratch, policy: &Path) -> u64 {
    let stats = scratch.run(&["policy", "stats", word(policy), "--json"]).with(0).json();
    stats["tables"]["bytes"].as_u64().unwrap_or_else(|| panic!("no size: {stats}"))
}

#[test]
fn puts_tables_in_force_of_the_size_that_a_policy_needs() {
    let scratch = Scratch::new();
    let large = large(&scratch, 1200);
    let size = tables_of(&scratch, &large);
    report("tables of a made-up policy", &format!("{size} bytes"), "above 4 MiB", size > 4 << 20);
    assert!(size > 4 << 20 && size < 32 << 20, "{size}");

    // The values of the daemon's maps; the greatest are generations.
    let value = "cat /proc/$(daemon)/fdinfo/* 2>/dev/null | sed -n 's/^value_size:[^0-9]*//p' | sort -n | tail -n 1";
    let denied = "echo secret >/tmp/one; tollgate label set $(of three) /tmp/one; as visitor cat /tmp/one";
    let steps = Guest::new(&scratch, "6.1")
        .with(&large, "/large")
        .step("enforce", "tollgate enforce /policy")
        .step("small", value)
        .step("denied", denied)
        .step("too large", "tollgate reload /large")
        .step("as before", "tollgate status --json")
        .step("still denied", denied)
        .step("again", "tollgate stop && tollgate enforce /large")
        .step("larger", value)
        .step("denied by it", denied)
        .step("evaluator", "tollgate policy verify /large --against bpf --decisions 20000")
        .step("smaller", "tollgate reload /policy && tollgate reload /large && tollgate status --json")
        .run();
    let bytes = |step: &str| steps[step].text.trim().parse::<u64>().unwrap();
    for step in ["enforce", "again", "evaluator", "smaller"] {
        steps[step].is(0, &[]);
    }
    for denied in ["denied", "still denied", "denied by it"] {
        steps[denied].is(1, &["Permission denied"]);
    }
    steps["too large"].is(2, &[&size.to_string(), "4194304", "stays in force", "--no-reload", "tollgate stop"]);
    assert_eq!(steps["as before"].json()["generation"], 1);
    report(
        "a generation of a small policy",
        &format!("{} bytes", bytes("small")),
        "below 7 MiB",
        bytes("small") < 7 << 20,
    );
    assert!(bytes("small") < 7 << 20 && bytes("larger") > 32 << 20, "{} {}", bytes("small"), bytes("larger"));
}
