//! The policy of a machine: modules, file contexts, ports and booleans, in the folder of a system, and in force in a guest.
//!
//! The guest needs QEMU and a kernel: without them that test fails, and says so.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::program::{Ended, Scratch, steps::source, word};

mod guest;

/// A service of an administrator's, and its files.
const WEB: &str = include_str!("policies/store/web.cil");

/// The folder of a system with Tollgate's own policy, which has not been built yet.
struct System {
    scratch: Scratch,
    root: PathBuf,
}

impl System {
    fn new() -> Self {
        let scratch = Scratch::new();
        let root = scratch.path("system");
        fs::create_dir_all(root.join("usr/share/tollgate")).unwrap();
        symlink(source("policies/tollgate"), root.join("usr/share/tollgate/policy")).unwrap();
        Self { scratch, root }
    }

    /// A system whose policy has been built.
    fn built() -> Self {
        let system = Self::new();
        system.run(&["policy", "rebuild"]).with(0);
        system
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        self.scratch.run(&[arguments, &["--root", word(&self.root)]].concat())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join("etc/tollgate").join(name)
    }

    /// Everything in its folder, by name.
    fn held(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let list = |folder: &Path| -> Vec<PathBuf> {
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        let all = list(&self.path("")).into_iter().chain(list(&self.path("policy.d"))).filter(|path| path.is_file());
        let mut held: Vec<_> = all.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        held.sort();
        held
    }

    /// The allowed permissions, by the policy that was built.
    fn allowed(&self, source: &str, target: &str, class: &str) -> Value {
        let policy = self.path("policy");
        let query = ["policy", "query", word(&policy), source, target, class, "--json"];
        self.scratch.run(&query).with(0).json()["allowed"].clone()
    }
}

/// A folder with the module `web` and its file contexts.
fn module(scratch: &Scratch, policy: &str) -> PathBuf {
    fs::create_dir_all(scratch.path("modules")).unwrap();
    scratch.file("modules/web.fc", include_str!("policies/store/web.fc"));
    scratch.file("modules/web.cil", policy)
}

fn web(type_: &str) -> String {
    format!("system_u:object_r:web.{type_}:s0")
}

#[test]
fn keeps_modules_with_the_shipped_policy_for_the_next_start() {
    let system = System::new();
    let web_cil = module(&system.scratch, WEB);
    let ended = system.run(&["policy", "install", word(&web_cil)]).with(0);
    for said in ["module web: installed, with file contexts", "at the next start: /etc/tollgate/policy"] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    let domain = "system_u:system_r:web.t:s0";
    assert_eq!(system.allowed(domain, &web("port_t"), "tcp_socket"), json!(["name_bind"]));
    let list = system.run(&["policy", "list", "--json"]).with(0).json();
    assert_eq!((&list[0]["name"], &list[0]["state"]), (&json!("web"), &json!("built-in")));
    // A module of the same name is replaced, and the changes are printed.
    let replacement = module(&system.scratch, &WEB.replace("name_bind", "name_connect"));
    let ended = system.run(&["policy", "install", word(&replacement)]).with(0);
    for said in ["module web: replaced", "- allow tcp_socket { name_bind } on web.port_t"] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    assert_eq!(system.allowed(domain, &web("port_t"), "tcp_socket"), json!(["name_connect"]));
    fs::write(system.path("policy.d/web.cil"), WEB).unwrap();
    let list = system.run(&["policy", "list"]).with(0).says(&["tollgate policy rebuild"]);
    assert_eq!(list.stdout, "web  changed since it was built in, with file contexts\n");
    system.run(&["policy", "rebuild"]).with(0);
    assert_eq!(system.allowed(domain, &web("port_t"), "tcp_socket"), json!(["name_bind"]));
    let ended = system.run(&["policy", "remove", "web"]).with(0);
    assert!(ended.stdout.contains("- type web.t"), "{}", ended.stdout);
    assert_eq!(system.run(&["policy", "list"]).with(0).stdout, "");
    system.run(&["policy", "remove", "web"]).refused(&["no module `web`"]);
}

#[test]
fn leaves_everything_as_it_was_where_a_module_is_refused_or_only_tried() {
    let system = System::built();
    let before = system.held();
    let install = |policy: &str, more: &[&str]| {
        let file = module(&system.scratch, policy);
        system.run(&[&["policy", "install", word(&file)], more].concat())
    };
    let tried = install(WEB, &["--dry-run"]).with(0);
    for said in ["+ type web.t", "+ /opt/web/.* -- system_u:object_r:web.exec_t:s0", "this was a dry run"] {
        assert!(tried.stdout.contains(said), "{said}: {}", tried.stdout);
    }
    install(&format!("{WEB}(allow web.t shadow_t (file (read)))\n"), &[]).refused(&["neverallow", "web.cil:"]);
    install("(allow web.t", &[]).refused(&["web.cil:1"]);
    install("(type other_t)", &[])
        .refused(&["/etc/tollgate/policy.d/web.fc: line 1: the policy has no type `web.exec_t`"]);
    assert_eq!(system.held(), before);
    // Decisions that each policy must make.
    let question = "system_u:system_r:web.t:s0\tsystem_u:object_r:etc_t:s0\tfile\t-write\n";
    fs::write(system.path("sanity.tsv"), question).unwrap();
    let before = system.held();
    install(&format!("{WEB}(allow web.t etc_t (file (write)))\n"), &[])
        .refused(&["sanity.tsv", "file write is allowed"]);
    assert_eq!(system.held(), before);
    install(WEB, &[]).with(0);
    let not_a_module = system.scratch.file("web.te", "");
    system.run(&["policy", "install", word(&not_a_module)]).refused(&["web.te is no module"]);
}

#[test]
fn leaves_a_policy_of_other_sources_alone_unless_it_is_told_to_replace_it() {
    let system = System::built();
    let (own, policy) = (system.scratch.file("own.cil", include_str!("policies/small.cil")), system.path("policy"));
    system.scratch.run(&["policy", "build", word(&own), "-o", word(&policy)]).with(0);
    let before = fs::read(&policy).unwrap();
    let web_cil = module(&system.scratch, WEB);
    for command in [
        &["policy", "rebuild"][..],
        &["policy", "install", word(&web_cil)],
        &["fcontext", "add", "-t", "etc_t", "/srv/x"],
        &["port", "add", "-t", "http_port_t", "-p", "tcp", "8085"],
    ] {
        system.run(command).refused(&["own.cil", "left as it is", "tollgate policy rebuild --force"]);
    }
    assert_eq!(fs::read(&policy).unwrap(), before);
    system.run(&["policy", "rebuild", "--force"]).with(0);
    system.run(&["policy", "rebuild"]).with(0);
}

#[test]
fn keeps_file_contexts_of_ones_own() {
    let system = System::built();
    let add = ["fcontext", "add", "-t", "httpd.content_t", "/data/web(/.*)?"];
    let ended = system.run(&add).with(0);
    let line = "/data/web(/.*)? system_u:object_r:httpd.content_t:s0";
    assert!(ended.stdout.contains(&format!("  + {line}")), "{}", ended.stdout);
    system.run(&["fcontext", "add", "-f", "d", "-t", "none", "/srv/www(/.*)?"]).with(0);
    system.run(&["fcontext", "add", "-e", "/data/web", "/web"]).with(0);
    let own = system.run(&["fcontext", "list", "--local"]).with(0).stdout;
    let rows: Vec<Vec<&str>> = own.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected: [&[&str]; 3] = [
        &["/data/web(/.*)?", "any", "system_u:object_r:httpd.content_t:s0"],
        &["/srv/www(/.*)?", "-d", "<<none>>"],
        &["/web", "=", "/data/web"],
    ];
    assert_eq!(rows, expected);
    let all = system.run(&["fcontext", "list", "--json"]).with(0).json();
    let all = all.as_array().unwrap();
    let of = |expression: &str| all.iter().filter(move |line| line["expression"] == expression).collect::<Vec<_>>();
    assert_eq!(of("/web(/.*)?")[0]["context"], "system_u:object_r:httpd.content_t:s0");
    // The shipped line for any kind of file stays for the other kinds.
    assert_eq!(of("/srv/www(/.*)?").len(), 7);
    system.run(&["fcontext", "add", "-t", "content_t", "/x"]).refused(&["no type `content_t`"]);
    system.run(&["fcontext", "add", "-t", "etc_t", "/x("]).refused(&["file_contexts.local", "line 3"]);
    system.run(&["fcontext", "add", "-t", "etc_t", "x"]).refused(&["begins with /"]);
    system.run(&["fcontext", "remove", "/srv/www(/.*)?"]).refused(&["--ftype"]);
    system.run(&["fcontext", "remove", "-f", "d", "/srv/www(/.*)?"]).with(0);
    system.run(&["fcontext", "remove", "-e", "/web"]).with(0);
    system.run(&["fcontext", "remove", "/data/web(/.*)?"]).with(0);
    assert_eq!(system.run(&["fcontext", "list", "--local"]).with(0).stdout, "");
    assert!(!system.path("file_contexts.local").exists() && !system.path("file_contexts.subs").exists());
}

#[test]
fn keeps_ports_of_ones_own() {
    let system = System::built();
    let add = |type_: &str, ports: &str| system.run(&["port", "add", "-t", type_, "-p", "tcp", ports]);
    let ended = add("http_port_t", "8085").with(0);
    assert!(ended.stdout.contains("+ (portcon tcp (8085 8085) system_u:object_r:http_port_t:s0)"), "{}", ended.stdout);
    add("db_port_t", "8085").with(0);
    assert_eq!(
        system.run(&["port", "list", "--local"]).with(0).stdout,
        "tcp   8085         system_u:object_r:db_port_t:s0\n"
    );
    let all = system.run(&["port", "list"]).with(0).stdout;
    for line in ["tcp   1-1023       system_u:object_r:reserved_port_t:s0", "system_u:object_r:db_port_t:s0  (local)"] {
        assert!(all.contains(line), "{line}: {all}");
    }
    add("db_port_t", "8080").refused(&["the policy already labels tcp 8080 as system_u:object_r:http_port_t:s0"]);
    add("db_port_t", "1000-2000").refused(&["tcp 1000-2000 and tcp 1-1023", "overlap"]);
    add("etc_t", "9000").refused(&["etc_t is not a type of ports"]);
    add("web_port_t", "9000").refused(&["no type `web_port_t`"]);
    add("db_port_t", "0").refused(&["`0` are no ports"]);
    system.run(&["port", "remove", "-p", "udp", "8085"]).refused(&["udp 8085 has no label that was added here"]);
    system.run(&["port", "remove", "-p", "tcp", "8085"]).with(0);
    assert_eq!(system.run(&["port", "list", "--local"]).with(0).stdout, "");
}

#[test]
fn keeps_booleans_over_rebuilds() {
    let system = System::built();
    let boolean = "httpd_connects_network";
    let set = |words: &[&str]| system.run(&[&["bool", "set"], words].concat());
    set(&["httpd_connects_network=on"]).refused(&["nothing is enforced", "-P"]);
    let ended = set(&["-P", "httpd_connects_network=on"]).with(0);
    assert!(ended.stdout.contains("+ allow tcp_socket { name_connect }"), "{}", ended.stdout);
    // A policy with the same value set twice is the same: `status` compares bytes.
    let image = || {
        let out = system.scratch.path("policy.33");
        system.scratch.run(&["policy", "export", "--image", word(&out), word(&system.path("policy"))]).with(0);
        fs::read(out).unwrap()
    };
    let once = image();
    fs::remove_file(system.scratch.path("policy.33")).unwrap();
    set(&["-P", "httpd_connects_network=on"]).with(0);
    assert!(image() == once, "another image");
    let now = || system.run(&["bool", "list", boolean]).with(0).stdout;
    assert_eq!(now(), "httpd_connects_network  none (next start: on)\n");
    assert_eq!(fs::read_to_string(system.path("booleans.local")).unwrap(), "httpd_connects_network=1\n");
    let ended = system.run(&["policy", "rebuild"]).with(0);
    assert!(ended.stdout.contains("The policies say the same."), "{}", ended.stdout);
    assert_eq!(now(), "httpd_connects_network  none (next start: on)\n");
    set(&["-P", "httpd_connects=on"]).refused(&["no boolean `httpd_connects`"]);
    set(&["-P", "httpd_connects_network"]).refused(&["NAME=on or NAME=off"]);
    // For a policy of other sources, the value is kept in its file.
    let debian = system.scratch.file("own.cil", include_str!("policies/small.cil"));
    system.scratch.run(&["policy", "build", word(&debian), "-o", word(&system.path("policy"))]).with(0);
    let name = system.run(&["bool", "list", "--json"]).with(0).json()[0]["name"].as_str().unwrap().to_owned();
    set(&["-P", &format!("{name}=off")]).with(0).says(&["kept in /etc/tollgate/policy itself"]);
    let value = system.run(&["bool", "list", &name, "--json"]).with(0).json();
    assert_eq!(value[0]["next_start"], json!(false));
}

/// As on an installed system; without these files `/lib` has no label if it is a link to `/usr/lib`.
#[test]
fn reads_what_lies_beside_file_contexts() {
    let scratch = Scratch::new();
    let policy = scratch.file("small.cil", include_str!("policies/small.cil"));
    let context = |type_: &str| format!("system_u:object_r:{type_}:s0\n");
    // What a file says twice counts once.
    let one =
        scratch.file("file_contexts", &format!("/usr/lib(/.*)?\t{}/usr/lib(/.*)?\t{0}/home/x\t{0}", context("tmp_t")));
    scratch.file("file_contexts.homedirs", &format!("/home/x\t{}", context("shadow_t")));
    scratch.file("file_contexts.subs_dist", "/lib /usr/lib\n");
    let (out, contexts) = (scratch.path("out"), scratch.path("contexts"));
    let build = ["policy", "build", word(&policy), "-o", word(&out), "--file-contexts", word(&one)];
    scratch.run(&build).with(0).says(&[]).stdout.find("file_contexts.subs_dist").expect("the files that were read");
    scratch.run(&["policy", "export", word(&out), "--file-contexts", word(&contexts)]).with(0);
    let text = fs::read_to_string(&contexts).unwrap();
    let expected = format!("/usr/lib(/.*)?\t{}/home/x\t{}/lib(/.*)?\t{0}", context("tmp_t"), context("shadow_t"));
    assert!(text.ends_with(&expected), "{text}");
    let local = |text: &str| scratch.file("file_contexts.local", text);
    local(&format!("/srv/x\t{}# again\n/srv/x\t{}", context("tmp_t"), context("shadow_t")));
    scratch.run(&build).refused(&["file_contexts.local: line 3", "line 1 already labels `/srv/x`"]);
    local(&format!("\n/srv/x(\t{}", context("tmp_t")));
    scratch.run(&build).refused(&["file_contexts.local", "line 2"]);
}

#[test]
fn builds_with_several_file_contexts_of_which_the_last_counts() {
    let scratch = Scratch::new();
    let policy = scratch.file("small.cil", include_str!("policies/small.cil"));
    let context = |type_: &str| format!("/srv/x\tsystem_u:object_r:{type_}:s0\n");
    let one = scratch.file("one", &format!("/srv\tsystem_u:object_r:tmp_t:s0\n{}", context("tmp_t")));
    let two = scratch.file("two", &context("shadow_t"));
    let out = scratch.path("out");
    let words = ["policy", "build", word(&policy), "-o", word(&out)];
    scratch.run(&[&words[..], &["--file-contexts", word(&one), "--file-contexts", word(&two)]].concat()).with(0);
    let contexts = scratch.path("contexts");
    scratch.run(&["policy", "export", word(&out), "--file-contexts", word(&contexts)]).with(0);
    let text = fs::read_to_string(contexts).unwrap();
    assert!(text.ends_with(&format!("/srv\tsystem_u:object_r:tmp_t:s0\n{}", context("shadow_t"))), "{text}");
}
