//! The store of a machine in a folder of the test, with Tollgate's own policy as the shipped one.

use tempfile::TempDir;

use super::*;

/// A service of an administrator's, and its files.
const WEB: &str = "(block web (type t) (type exec_t) (type data_t) (type port_t)
  (call service (t exec_t lowest)) (call owns (t data_t)) (typeattributeset port_type port_t))\n";
const WEB_FC: &str =
    "/opt/web/web -- system_u:object_r:web.exec_t:s0\n/srv/web(/.*)? system_u:object_r:web.data_t:s0\n";

struct Machine {
    root: TempDir,
    store: Store,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let shipped = root.path().join("usr/share/tollgate/policy");
        fs::create_dir_all(&shipped).unwrap();
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/tollgate");
        for entry in fs::read_dir(own).unwrap().map(|entry| entry.unwrap()) {
            fs::copy(entry.path(), shipped.join(entry.file_name())).unwrap();
        }
        let store = Store::below(root.path(), None);
        Self { root, store }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.path().join("etc/tollgate").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn build(&self) -> Result<Next, StoreError> {
        self.store.read()?.build()
    }

    fn refusal(&self) -> String {
        self.build().unwrap_err().to_string()
    }
}

#[test]
fn builds_what_is_shipped_together_with_what_is_local_and_knows_of_what() {
    let machine = Machine::new();
    machine.write("policy.d/web.cil", WEB);
    machine.write("policy.d/web.fc", WEB_FC);
    machine.write("policy.d/.web.cil.swp", "(nonsense)");
    machine.write("file_contexts.local", "/srv/www(/.*)? system_u:object_r:web.data_t:s0\n");
    machine.write("file_contexts.subs", "/web /srv/www\n");
    machine.write("ports.local", "portcon tcp 8085 system_u:object_r:web.port_t:s0\n");
    machine.write("booleans.local", "httpd_connects_network=1\nno_such=1\n");
    let Next { built, notes } = machine.build().unwrap();
    let lines: Vec<String> = crate::file_contexts::lines(&built.file_contexts).map(|line| line.to_string()).collect();
    for expected in [
        "/opt/web/web -- system_u:object_r:web.exec_t:s0",
        "/srv/www(/.*)? system_u:object_r:web.data_t:s0",
        "/web(/.*)? system_u:object_r:web.data_t:s0",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected}");
    }
    assert!(!lines.contains(&"/srv/www(/.*)? system_u:object_r:httpd.content_t:s0".to_owned()), "the shipped line");
    assert!(built.policy.ports.iter().any(|port| (port.low, port.high) == (8085, 8085)));
    let boolean = built.policy.booleans.iter().find(|boolean| boolean.name == "httpd_connects_network").unwrap();
    assert!(boolean.value);
    assert!(notes.len() == 1 && notes[0].contains("no boolean `no_such`"), "{notes:?}");
    let origin = built.origin.unwrap();
    let folders = "/usr/share/tollgate/policy (12 files), /etc/tollgate (booleans.local file_contexts.local \
                   file_contexts.subs ports.local), /etc/tollgate/policy.d (web.cil web.fc)";
    assert_eq!(origin.folders(), folders);
    assert!(machine.store.has_built(&origin));
}

#[test]
fn knows_a_policy_that_is_of_other_sources_too() {
    let machine = Machine::new();
    let origin =
        |names: &[&str]| Origin::now(names.iter().map(|name| crate::origin::Source::new(*name, b"")).collect());
    let shipped = "/usr/share/tollgate/policy/30-base.cil";
    assert!(machine.store.has_built(&origin(&[shipped, "/etc/tollgate/policy.d/web.cil"])));
    assert!(!machine.store.has_built(&origin(&[shipped, "/root/web.cil"])));
    assert!(!machine.store.has_built(&origin(&["/etc/tollgate/policy.d/web.cil"])), "nothing of it is shipped");
    assert!(!machine.store.has_built(&origin(&["base.pp", "ssh.pp"])), "Debian's");
}

#[test]
fn refuses_what_breaks_a_promise_and_names_the_module() {
    let machine = Machine::new();
    let rule = "(allow web.t shadow_t (file (read)))\n";
    machine.write("policy.d/web.cil", &format!("{WEB}{rule}"));
    let error = machine.refusal();
    assert!(error.contains("neverallow") && error.contains("/etc/tollgate/policy.d/web.cil:3"), "{error}");
}

#[test]
fn refuses_modules_that_label_the_same_and_contexts_that_are_nobodys() {
    let machine = Machine::new();
    machine.write("policy.d/a.cil", "");
    machine.write("policy.d/a.fc", "/srv/x -- system_u:object_r:etc_t:s0\n");
    machine.write("policy.d/b.cil", "");
    machine.write("policy.d/b.fc", "/srv/x system_u:object_r:bin_t:s0\n");
    assert_eq!(machine.refusal(), "modules a and b both label `/srv/x`: one of them has to leave it out");
    machine.write("policy.d/b.fc", "/srv/x system_u:object_r:nobody_t:s0\n");
    machine.write("policy.d/a.fc", "");
    assert!(machine.refusal().starts_with("/etc/tollgate/policy.d/b.fc: line 1: the policy has no type `nobody_t`"));
    fs::remove_file(machine.root.path().join("etc/tollgate/policy.d/b.cil")).unwrap();
    assert!(machine.refusal().starts_with("b.fc has no module b.cil beside it"));
}

#[test]
fn refuses_to_build_on_nothing() {
    let root = tempfile::tempdir().unwrap();
    let error = Store::below(root.path(), None).read().unwrap_err().to_string();
    assert!(error.contains("there is no shipped policy"), "{error}");
}

#[test]
fn installs_replaces_and_removes_modules_by_name() {
    let machine = Machine::new();
    let mut contents = machine.store.read().unwrap();
    assert!(!contents.install("web", WEB.into(), Some(WEB_FC.into())).unwrap());
    assert!(contents.install("web", WEB.into(), None).unwrap(), "one of that name was there");
    let modules: Vec<(String, usize)> = contents.modules().map(|m| (m.name.to_owned(), m.files.len())).collect();
    assert_eq!(modules, [("web".to_owned(), 1)], "the file contexts went with the module that they were of");
    let error = contents.remove("wob").unwrap_err().to_string();
    assert_eq!(error, "there is no module `wob` in /etc/tollgate/policy.d (like it: web)");
    contents.remove("web").unwrap();
    assert_eq!(contents, machine.store.read().unwrap());
    for name in ["", ".hidden", "-n", "a/b", "a b"] {
        assert!(matches!(contents.install(name, Vec::new(), None), Err(StoreError::Name(_))), "{name:?}");
    }
}

#[test]
fn keeps_what_was_changed_and_its_policy() {
    let machine = Machine::new();
    machine.write("policy.d/old.cil", "(type old_t)\n");
    let before = machine.store.read().unwrap();
    assert!(machine.store.kept().unwrap().is_none());
    let mut after = before.clone();
    after.install("web", WEB.into(), Some(WEB_FC.into())).unwrap();
    after.remove("old").unwrap();
    let built = after.build().unwrap().built;
    let staged = machine.store.stage(&before, &after, &built).unwrap();
    assert_eq!(machine.store.read().unwrap(), before);
    staged.commit().unwrap();
    assert_eq!(machine.store.read().unwrap(), after);
    assert_eq!(machine.store.kept().unwrap().unwrap().to_bytes(), built.to_bytes());
    assert_eq!(machine.store.identity().unwrap().unwrap().origin, built.origin);
}

#[test]
fn labels_ports_once_and_only_with_types_of_ports() {
    let machine = Machine::new();
    machine.write("policy.d/web.cil", WEB);
    let mut contents = machine.store.read().unwrap();
    let built = contents.build().unwrap().built;
    let context = context_like(&built, "port", "web.port_t").unwrap();
    assert_eq!(context, "system_u:object_r:web.port_t:s0");
    let port = |ports: &str| Port::new(Protocol::Tcp, ports, &context).unwrap();
    let error = contents.add_port(&port("8080"), &built.policy).unwrap_err().to_string();
    assert!(error.starts_with("the policy already labels tcp 8080 as system_u:object_r:http_port_t:s0,"), "{error}");
    let other = Port { context: context_like(&built, "port", "etc_t").unwrap(), ..port("8085") };
    assert!(matches!(contents.add_port(&other, &built.policy), Err(StoreError::NotPortType { .. })));
    assert!(matches!(contents.add_port(&port("1000-1100"), &built.policy), Err(StoreError::PortsOverlap { .. })));
    assert!(!contents.add_port(&port("8000-8090"), &built.policy).unwrap());
    let built = contents.build().unwrap().built;
    let label = |number: u16| {
        let label =
            built.policy.ports.iter().find(|label| label.protocol == 6 && (label.low..=label.high).contains(&number));
        context::text(&built.policy, &label.unwrap().context)
    };
    assert_eq!([label(8085), label(8080)], [context.clone(), "system_u:object_r:http_port_t:s0".to_owned()]);
    assert!(contents.add_port(&port("8000-8090"), &built.policy).unwrap(), "a local label is replaced");
    assert!(contents.remove_port(&port("8000-8090")).unwrap() && !contents.remove_port(&port("8000-8090")).unwrap());
    assert_eq!(contents, machine.store.read().unwrap());
}

#[test]
fn offers_types_that_look_like_the_one_that_is_none() {
    let machine = Machine::new();
    let built = machine.build().unwrap().built;
    let error = context_like(&built, "file", "etc_tt").unwrap_err().to_string();
    assert!(error.starts_with("the policy has no type `etc_tt` (like it: etc_t"), "{error}");
    let whole = "system_u:object_r:etc_t:s3:c1";
    assert_eq!(context_like(&built, "file", whole).unwrap(), whole);
    assert!(context_like(&built, "file", "nobody:object_r:etc_t:s0").is_err());
}

#[test]
fn lets_one_change_it_at_a_time() {
    let machine = Machine::new();
    let held = machine.store.lock(|| panic!("nobody has it")).unwrap();
    let mut waited = false;
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| machine.store.lock(|| waited = true).map(drop));
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(held);
        waits.join().unwrap().unwrap();
    });
    assert!(waited);
}

#[test]
fn knows_the_macros_of_shipped_files_and_of_modules() {
    let machine = Machine::new();
    machine.write("policy.d/web.cil", "(macro webby ((type D)))\n");
    let macros = machine.store.read().unwrap().macros();
    for name in ["service", "python", "connects", "guard", "webby"] {
        assert!(macros.contains(name), "{name} is not in {macros:?}");
    }
    assert!(!macros.contains("httpd"), "{macros:?}");
}
