//! Roundabout acts of an intruder, under the kernel's SELinux and under Tollgate, with one policy.
//!
//! The acts are in `acts/` and print a verdict per line. Tollgate's verdicts are the same, or stricter, or the difference is
//! listed with its reason. An unconfined process does each act, too: an act in which it fails as well proves nothing. To add
//! an act, write a function and a line of a table in `acts/`, and if necessary a line of DIFFERENCES or IMPOSSIBLE here.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::program::{
    Scratch, entries,
    guests::kernels,
    report,
    steps::{Guest, policy, source},
    word,
};

const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.18", "7.2"] } else { &["6.1"] };
const INTRUDER: &str = "intruder";
const UNCONFINED: &str = "unconfined_t";
const MODULES: &[&str] = &["brd", "overlay", "loop", "sctp", "vsock", "af_alg", "binfmt_misc"];
/// Newer kernels have FUSE built in, and no SMC.
const MODULES_OF_6_1: &[&str] = &["fuse", "smc"];

/// The directory of the acts, on a file system that keeps labels, before labels are set.
const PLACE: &str = "mkdir -p /srv && /sbin/mke2fs -q -t ext4 -F -b 4096 -O verity /dev/ram0 && \
mount -o usrquota /dev/ram0 /srv && cd /srv && mkdir open vault notices tool gate && chmod 777 open && \
for program in /acts /probe /fuzz; do [ ! -e $program ] || cp $program tool/; done";
/// Under SELinux each file is labelled by itself; Tollgate labels by the policy's `filecon`.
const SELINUX: &str = "mount -t selinuxfs none /sys/fs/selinux && \
dd if=/policy of=/sys/fs/selinux/load bs=16M && echo 1 > /sys/fs/selinux/enforce && \
of() { label=system_u:object_r:$1:s0; shift; /label $label \"$@\"; } && \
of open /srv /srv/open && of secret /srv/vault && of notice /srv/notices && of tool /srv/tool /srv/tool/* && of gate /srv/gate";
const TOLLGATE: &str = "tollgate enforce /policy";

/// An act whose verdict is another under Tollgate.
struct Difference {
    domain: &'static str,
    act: &'static str,
    selinux: &'static str,
    tollgate: &'static str,
    reason: &'static str,
    /// The kernels with this difference; empty: all.
    kernels: &'static [&'static str],
}

const DIFFERENCES: &[Difference] = &[
    ring(INTRUDER, "sent_to_ring", "EACCES"),
    ring(INTRUDER, "registered_in_ring", "EACCES"),
    ring(UNCONFINED, "sent_to_ring", "granted"),
    ring(UNCONFINED, "registered_in_ring", "granted"),
    fast_open("fast_open"),
    fast_open("fast_open_by_mptcp"),
];

/// No hook is called when a file is registered in an io_uring. The keeper, who is confined, gets no other domain's ring, and
/// ends without having registered a file; SELinux checks when the file is read.
const fn ring(domain: &'static str, act: &'static str, selinux: &'static str) -> Difference {
    let reason = "a confined process takes no ring of another domain";
    Difference { domain, act, selinux, tollgate: "ECONNRESET", reason, kernels: &[] }
}

/// Debian's 6.1 has the check from a later kernel, its 6.18 does not.
const fn fast_open(act: &'static str) -> Difference {
    let reason = "SELinux does not ask about connections that MSG_FASTOPEN opens";
    Difference { domain: INTRUDER, act, selinux: "granted", tollgate: "EACCES", reason, kernels: &["6.18"] }
}

/// Acts that fail for an unconfined process too, with the error and the kernels.
const IMPOSSIBLE: &[(&str, &str, &[&str])] = &[
    ("attributes_by_path", "ENOSYS", &["6.1"]), // since 6.17
    ("attribute_at_path", "ENOSYS", &["6.1"]),  // since 6.13
    ("connected_by_smc", "EBADF", &["6.18", "7.2"]),
    ("loaded_for_format", "missed", &["6.18", "7.2"]), // since 6.14 no module is looked for
    ("namespace_by_ioctl", "ENOTTY", &["6.1"]),        // since 6.11
    ("secret_memory", "ENOSYS", &["6.1"]),             // switched off until 6.5
    ("fast_open_by_mptcp", "EOPNOTSUPP", &["6.1"]),
    ("called_by_uevent", "ENOENT", &[]), // Debian's kernels have no such helper
];

/// The verdict of each act in each domain.
type Verdicts = BTreeMap<(String, String), String>;

fn is_of(kernels: &[&str], kernel: &str) -> bool {
    kernels.is_empty() || kernels.contains(&kernel)
}

/// The C sources in these directories.
pub(super) fn sources(places: &[&str]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = places.iter().flat_map(|place| entries(&source(place))).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    files
}

/// A static program of these sources. Its memory has the same addresses in all its processes.
pub(super) fn compile(scratch: &Scratch, name: &str, sources: &[PathBuf]) -> PathBuf {
    let (out, library) = (scratch.path(name), source("lib"));
    let mut cc = scratch.command("cc", &["-static", "-no-pie", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror"]);
    cc.args(["-Wno-missing-field-initializers", "-I", word(&library), "-o", word(&out)]).args(sources);
    scratch.finish(cc).with(0);
    out
}

/// Sources of the acts, by their names.
pub(super) fn of_acts(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| source(&format!("tests/attacks/acts/{name}.c"))).collect()
}

/// A guest with these programs, in which `lsm` enforces the acts' policy.
pub(super) fn guest_with<'s>(
    scratch: &'s Scratch,
    kernel: &'static str,
    lsm: &'static str,
    programs: &[(&Path, &str)],
) -> Guest<'s> {
    let built = policy(scratch, "built", &[source("tests/attacks/acts.cil")]);
    let image = scratch.path("image");
    scratch.run(&["policy", "export", word(&built), "--image", word(&image)]).with(0);
    let (policy, enforce) = if lsm == "selinux" { (image, SELINUX) } else { (built, TOLLGATE) };
    let guest = Guest::under(scratch, kernel, &policy).lsm(lsm).modules(MODULES);
    let guest = if kernel == "6.1" { guest.modules(MODULES_OF_6_1) } else { guest };
    let label = compile(scratch, "label", &of_acts(&["label", "stage"]));
    let guest = guest.with(Path::new("/sbin/mke2fs"), "/sbin/mke2fs").with(&label, "/label");
    let guest = programs.iter().fold(guest, |guest, (host, there)| guest.with(host, there));
    guest.step("place", PLACE).step("enforce", enforce)
}

/// A guest with the acts.
fn guest<'s>(scratch: &'s Scratch, kernel: &'static str, lsm: &'static str) -> Guest<'s> {
    let mut files = sources(&["tests/attacks/acts", "lib"]);
    files.retain(|path| !["probe.c", "label.c"].contains(&path.file_name().unwrap().to_str().unwrap()));
    let (acts, probe) = (compile(scratch, "acts", &files), compile(scratch, "probe", &of_acts(&["probe", "stage"])));
    guest_with(scratch, kernel, lsm, &[(&acts, "/acts"), (&probe, "/probe")])
}

/// All acts, of the intruder and of an unconfined process.
fn play(kernel: &'static str, lsm: &'static str) -> Verdicts {
    let scratch = Scratch::new();
    let guest = guest(&scratch, kernel, lsm);
    let guest = guest.step(INTRUDER, "/acts run intruder").step(UNCONFINED, "/acts run unconfined_t");
    let steps = guest.step("kernel", "! dmesg | grep -E 'WARNING:|BUG:|Oops'").run();
    for step in ["place", "enforce", INTRUDER, UNCONFINED, "kernel"] {
        steps[step].is(0, &[]);
    }
    let lines = [INTRUDER, UNCONFINED].into_iter().flat_map(|domain| steps[domain].text.lines());
    lines.filter_map(verdict).collect()
}

fn verdict(line: &str) -> Option<((String, String), String)> {
    let mut words = line.splitn(3, ' ');
    let (domain, act, verdict) = (words.next()?, words.next()?, words.next()?);
    [INTRUDER, UNCONFINED].contains(&domain).then(|| ((domain.to_owned(), act.to_owned()), verdict.to_owned()))
}

/// Acts that prove nothing: an unconfined process fails too, and no reason is listed.
fn vain(kernel: &str, verdicts: &Verdicts) -> Vec<String> {
    let expected = |act: &str| {
        let impossible = IMPOSSIBLE.iter().find(|(name, _, kernels)| *name == act && is_of(kernels, kernel));
        impossible.map_or("granted", |(_, error, _)| error)
    };
    let unconfined = verdicts.iter().filter(|((domain, _), _)| domain == UNCONFINED);
    let vain = unconfined.filter(|((_, act), verdict)| *verdict != expected(act));
    vain.map(|((domain, act), verdict)| format!("{kernel}: {domain} {act}: {verdict}, not {}", expected(act))).collect()
}

/// Differences between verdicts that are not listed, and listed ones that do not occur.
fn complaints(kernel: &str, selinux: &Verdicts, tollgate: &Verdicts) -> Vec<String> {
    let complaint = |((domain, act), denied): (&(String, String), &String)| {
        let got = tollgate.get(&(domain.clone(), act.clone())).map_or("nothing", String::as_str);
        let is_it =
            |listed: &&Difference| listed.domain == domain && listed.act == act && is_of(listed.kernels, kernel);
        let listed = DIFFERENCES.iter().find(is_it);
        let expected = listed.map_or((denied.as_str(), denied.as_str()), |listed| (listed.selinux, listed.tollgate));
        let reason = listed.map_or("not listed", |listed| listed.reason);
        (expected != (denied, got))
            .then(|| format!("{kernel}: {domain} {act}: SELinux {denied}, Tollgate {got} ({reason})"))
    };
    selinux.iter().filter_map(complaint).collect()
}

#[test]
fn denies_an_intruder_all_that_selinux_denies_him() {
    let mut complaints_of_all = Vec::new();
    for kernel in kernels(KERNELS) {
        let (selinux, tollgate) = (play(kernel, "selinux"), play(kernel, "bpf"));
        let acts = selinux.len() / 2;
        let denied =
            tollgate.iter().filter(|((domain, _), verdict)| domain == INTRUDER && *verdict != "granted").count();
        let mut found = complaints(kernel, &selinux, &tollgate);
        found.extend(vain(kernel, &selinux));
        let figure = format!("{acts} acts, {denied} denied by Tollgate, {} differ as listed", DIFFERENCES.len());
        report(&format!("acts of an intruder on {kernel}"), &figure, "none differs otherwise", found.is_empty());
        assert!(acts >= 60, "{acts} acts: {selinux:?}");
        complaints_of_all.append(&mut found);
    }
    assert!(complaints_of_all.is_empty(), "{}", complaints_of_all.join("\n"));
}
