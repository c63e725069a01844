//! The contexts of peers, in guests: what unmodified getsockopt(SO_PEERSEC) returns, beside the kernel's SELinux, and servers
//! that act for their clients.

use std::path::PathBuf;

use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    machine::{Machine, policy, source},
    steps::{Guest, TIMEOUT},
    word,
};

/// Connections between contexts, with the same functions under both engines.
const ACTS: &str = r#"
everything=unconfined_t:s0-s15:c0.c1023
pair() {
    echo "== $1 serves $2 on $3"
    as $1 peer serve $3 > /served &
    as $2 peer connect $3; wait $!; cat /served
}
echo "== alone"; as $everything peer alone; as server_t:s0-s3 peer alone
pair server_t:s0-s3 client_t:s1 /one
pair server_t:s0-s3 client_t:s2:c1,c5 /two
pair server_t:s0 client_t:s0 /three
pair $everything client_t:s1 /four
pair server_t:s0 $everything /five
pair $everything $everything /six
pair server_t:s0-s3 client_t:s1 7000
"#;

/// Starts the kernel's SELinux, permissive.
const SELINUX: &str = r#"
mount -t selinuxfs none /sys/fs/selinux
dd if=/image of=/sys/fs/selinux/load bs=16M 2>/dev/null || exit 3
as() {
    context=$1; program=$(which $2); shift 2
    sh -c 'printf system_u:system_r:$0 > /proc/self/attr/exec; exec "$@"' $context $program "$@"
}
"#;

/// Starts enforcement, between two looks at a machine without it.
const TOLLGATE: &str = r#"
as() { context=$1; shift; tollgate run --context system_u:system_r:$context -- "$@"; }
peer alone > /before
tollgate enforce /policy || exit 3
"#;

/// What else is seen of Tollgate.
const MORE: &str = r#"
echo "== end of comparison"
as server_t:s0-s3 peer detach
as client_t:s1 peer alone | head -n 1
kill -9 $(cat /run/tollgate/lock); sleep 1
peer alone | head -n 1
tollgate stop --force
peer alone > /after
cmp /before /after && echo "as before"
"#;

fn parties(scratch: &Scratch) -> PathBuf {
    policy(scratch, "policy", &[source("tests/policies/peers.cil")])
}

/// A program of C without libraries.
fn compile(scratch: &Scratch, name: &str, path: &str) -> PathBuf {
    let program = scratch.path(name);
    let mut cc =
        scratch.command("cc", &["-D_GNU_SOURCE", "-static", "-Wall", "-Wextra", "-Werror", "-o", word(&program)]);
    cc.arg(source(path));
    scratch.finish(cc).with(0);
    program
}

/// The contexts that callers were told. Tollgate cannot say how long a buffer must be.
fn told(output: &str) -> Vec<&str> {
    let lines = output.lines().skip_while(|line| *line != "== alone");
    let lines = lines.take_while(|line| *line != "== end of comparison");
    lines.filter(|line| !line.starts_with("short: ") && !line.starts_with("none: ")).collect()
}

#[test]
fn tells_the_peers_that_selinux_tells() {
    let scratch = Scratch::new();
    let (built, image, peer) =
        (parties(&scratch), scratch.path("image"), compile(&scratch, "peer", "tests/peers/peer.c"));
    scratch.run(&["policy", "export", word(&built), "--image", word(&image)]).with(0);
    for kernel in kernels(KERNELS) {
        let script = format!("{SELINUX}{ACTS}");
        let machine = Machine::new(&scratch, kernel, "selinux", TIMEOUT).option(&["--append", "enforcing=0"]);
        let selinux = machine.file(&image, "/image").file(&peer, "/bin/peer").run(&["sh", "-c", &script]).with(0);
        let script = format!("{TOLLGATE}{ACTS}{MORE}");
        let machine = Machine::new(&scratch, kernel, "lockdown,capability,bpf", TIMEOUT).file(&built, "/policy");
        let machine = machine.file(&peer, "/bin/peer").file(&scratch.program(), "/bin/tollgate");
        let ours = machine.run(&["sh", "-c", &script]).with(0);
        println!("{kernel}\n{}\n{}{}", selinux.stdout, ours.stdout, ours.stderr);
        assert_eq!(told(&ours.stdout), told(&selinux.stdout), "{kernel}");
        let says = |line: &str| assert!(ours.stdout.lines().any(|said| said == line), "{kernel} does not say {line:?}");
        says("accepted: system_u:system_r:client_t:s2:c1,c5 36");
        says("connected: system_u:system_r:server_t:s2:c1,c5 36");
        says("other end: system_u:system_r:server_t:s0-s3 33");
        says("short: ENOPROTOOPT");
        says("udp: ENOPROTOOPT");
        // A confined domain with all capabilities.
        says("links: some, denied: 1, detached: 0");
        says("pair: system_u:system_r:client_t:s1 30");
        // Without a daemon.
        says("pair: system_u:system_r:unconfined_t:s0-s15:c0.c1023 47");
        says("as before");
    }
}

/// Runs a server of the example, and a client at each of two levels.
const SERVE: &str = r#"
as() { context=$1; shift; tollgate run --context system_u:system_r:$context -- "$@"; }
serve() {
    context=$1; shift; rm -f /tmp/files
    as $context server /tmp/files /tmp/secret "$@" & server=$!
    until [ -S /tmp/files ]; do sleep 0.1; done; sleep 1
    for level in s1 s3; do as client_t:$level client /tmp/files; done
    kill $server 2>/dev/null; wait $server; rm -f /tmp/files
}
echo "the secret" > /tmp/secret
"#;
/// The label of the file.
const SECRET: &str = "tollgate label set system_u:object_r:tmp_t:s2 /tmp/secret >/dev/null";

#[test]
fn grants_a_server_what_its_clients_may_do_and_no_more() {
    let scratch = Scratch::new();
    let built = parties(&scratch);
    let (server, client) = (scratch.path("server"), compile(&scratch, "client", "examples/act/client.c"));
    let guest = Guest::under(&scratch, "6.1", &built).with_library();
    let root = scratch.path("root");
    let mut cc = scratch.command("cc", &["-Wall", "-Wextra", "-Werror", "-o", word(&server)]);
    cc.arg(source("examples/act/server.c")).arg("-I").arg(root.join("usr/include"));
    // The first path is for this machine, which looks up the program's libraries; the second for the guest.
    let path = format!("-Wl,-rpath,{}:/usr/local/lib", word(&root.join("usr/lib")));
    cc.arg("-L").arg(root.join("usr/lib")).args(["-ltollgate", &path]);
    scratch.finish(cc).with(0);
    let steps = guest
        .with(&server, "/bin/server")
        .with(&client, "/bin/client")
        .names(SERVE)
        .step("nothing", "(sleep 2; client /tmp/files) & timeout 4 server /tmp/files /tmp/secret; true")
        .lines("mkdir -p /elsewhere; mount --move /sys/fs/cgroup /elsewhere\n")
        .step("enforce", &format!("tollgate enforce /policy 2>&1; {SECRET}; tollgate status"))
        .step("serve", "serve server_t:s0-s3")
        .lines("mount --move /elsewhere /sys/fs/cgroup\n")
        .step("reload", "tollgate reload /policy; tollgate status")
        .step("serve again", "serve server_t:s0-s3")
        .step("whole", "serve server_t:s0-s3 whole")
        .step("plain", "serve plain_t:s0-s3")
        .step("stuck", "serve stuck_t:s0-s3 whole")
        .step("unconfined", "serve unconfined_t:s0-s15:c0.c1023")
        .run();
    steps["nothing"].is(0, &["cannot act for it: no daemon answers"]);
    steps["enforce"].is(0, &["getsockopt(SO_PEERSEC) tells no contexts: mount cgroup v2"]);
    let page = std::fs::read_to_string(source("examples/act/README.md")).unwrap();
    let shown: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    ")).skip(2).take(4).collect();
    for step in ["serve", "serve again"] {
        let beside = |line: &&str| ["the secret", "Terminated"].contains(line);
        let printed: Vec<&str> = steps[step].text.lines().filter(|line| !beside(line)).collect();
        assert_eq!(printed, shown, "{step}");
        assert!(steps[step].text.contains("the secret"), "{step}");
    }
    assert!(!steps["reload"].is(0, &["mode "]).text.contains("SO_PEERSEC"), "{}", steps["reload"].text);
    // The clients' domain reads what is above them; the server's does not.
    assert_eq!(steps["whole"].text.matches("granted").count(), 2, "{}", steps["whole"].text);
    let plain = &steps["plain"].text;
    assert_eq!(plain.matches("cannot act for it: cannot set the context: Permission denied").count(), 2, "{plain}");
    assert!(!plain.contains("the secret"), "{plain}");
    steps["stuck"].is(0, &["cannot go back"]);
    // Who is not confined reads everything, for whomever.
    assert_eq!(steps["unconfined"].text.matches("granted").count(), 2, "{}", steps["unconfined"].text);
}
