use tollgate_policy::{
    sepol::{CilFile, Options},
    sources::Sources,
};

use super::*;
use crate::{grants::Grants, module::Module, package::Package, unit::Unit};

const PYTHON: &str = include_str!("../../fixtures/python.show");
const NGINX: &str = include_str!("../../fixtures/nginx.show");

fn tcp(number: u16) -> Port {
    Port { protocol: Protocol::Tcp, number }
}

fn service(text: &str) -> Service {
    Service::of_unit(Unit::parse(text).unwrap()).unwrap()
}

fn found(ports: &[(Port, Option<&str>)]) -> Found {
    let ports = ports.iter().map(|(port, kind)| (*port, kind.map(str::to_owned))).collect();
    Found { ports, ..Found::default() }
}

#[track_caller]
fn has(block: &Block, lines: &[&str]) {
    let cil = block.cil();
    for line in lines {
        assert!(cil.contains(line), "{line} is not in:\n{cil}");
    }
}

#[test]
fn begins_a_learnt_domain_with_nothing_but_what_it_is_and_does_to_itself() {
    let block = Block::new("notes", Way::Learn, &service(PYTHON), &found(&[(tcp(8085), None)]));
    has(&block, &["(typeattributeset domain t) (typeattributeset promised t)", "(typetransition t .tmp_t file tmp_t)"]);
    has(&block, &["(portcon tcp 8085 (system_u object_r port_t lowest))", "(allow t port_t (tcp_socket (name_bind)))"]);
    // What systemd makes anew has its label at once.
    has(&block, &["(typetransition unconfined_domain .run_t dir \"notes\" run_t)"]);
    has(&block, &["(typetransition unconfined_domain .var_t dir \"notes\" data_t)"]);
    let (itself, others): (Vec<&str>, Vec<&str>) =
        ITSELF.iter().filter(|line| line.starts_with("(allow ")).partition(|line| line.starts_with("(allow t self "));
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(block.cil().matches("(allow ").count(), 1 + itself.len(), "{}", block.cil());
    assert!(!block.cil().contains("(call "), "{}", block.cil());
    assert_eq!((block.domain().as_str(), block.context().as_str()), ("notes.t", "system_u:system_r:notes.t:s0"));
}

#[test]
fn gives_by_macros_what_a_service_of_its_kind_needs() {
    let found = found(&[(tcp(8085), None), (tcp(80), Some("http_port_t"))]);
    let block = Block::new("notes", Way::Macro, &service(PYTHON), &found);
    has(&block, &["(call service (t exec_t lowest))", "(call networked (t))", "(call owns (t data_t))"]);
    has(&block, &["(call listens (t http_port_t))", "(call listens (t port_t))", "(call owns (t run_t))"]);
    has(&block, &["(call interpreted (t))"]);
    assert!(!block.cil().contains("capability"), "its user is not root: {}", block.cil());
    let quiet = Block::new("notes", Way::Macro, &service(PYTHON), &Found::default());
    assert!(!quiet.cil().contains("networked"), "it listens on nothing: {}", quiet.cil());
}

#[test]
fn gives_root_s_services_the_capabilities_that_their_unit_leaves_them() {
    let block = Block::new("web", Way::Macro, &service(NGINX), &Found::default());
    has(&block, &["(allow t self (capability (chown dac_override "]);
    let bound = NGINX.lines().filter(|line| !line.starts_with("CapabilityBoundingSet=")).collect::<Vec<_>>().join("\n");
    let bound = format!("{bound}\nCapabilityBoundingSet=cap_net_bind_service cap_sys_admin\n");
    let block = Block::new("web", Way::Macro, &service(&bound), &Found::default());
    has(&block, &["(allow t self (capability (net_bind_service)))"]);
}

#[test]
fn labels_its_files_and_none_that_belong_to_another_domain() {
    let mut nginx = service(NGINX);
    let folders = ["/etc/nginx", "/var/log/nginx", "/usr/share/nginx"].map(std::path::PathBuf::from).into();
    nginx.package = Some(Package { name: "nginx".to_owned(), folders, ..Package::default() });
    let logs = nginx.places().into_iter().find(|place| place.kind == Kind::Log).unwrap();
    let found = Found { claimed: [(logs, "httpd.log_t".to_owned())].into(), ..Found::default() };
    let block = Block::new("web", Way::Learn, &nginx, &found);
    let expected = "/etc/nginx(/.*)?\tsystem_u:object_r:web.conf_t:s0\n\
                    /run/nginx\\.pid\tsystem_u:object_r:web.run_t:s0\n\
                    /usr/sbin/nginx\t--\tsystem_u:object_r:web.exec_t:s0\n\
                    /usr/share/nginx(/.*)?\tsystem_u:object_r:web.content_t:s0\n";
    assert_eq!(block.file_contexts(), expected);
    // What it makes there itself has its label at once, too; and no type is declared that nothing has.
    has(&block, &["(typetransition t .run_t file \"nginx.pid\" run_t)"]);
    assert!(!block.cil().contains("(type log_t)"), "{}", block.cil());
}

#[test]
fn matches_a_path_and_no_other() {
    assert_eq!(expression(Path::new("/opt/a.b+c/(x) y")), "/opt/a\\.b\\+c/\\(x\\)\\sy");
}

#[test]
fn gives_ports_that_it_was_seen_to_connect_to_a_type() {
    let mut block = Block::new("notes", Way::Learn, &service(PYTHON), &Found::default());
    block.remote_ports = [tcp(9200)].into();
    has(&block, &["(type remote_port_t)", "(portcon tcp 9200 (system_u object_r remote_port_t lowest))"]);
    has(&block, &["(allow t remote_port_t (tcp_socket (name_connect)))", "(typeattributeset port_type remote_port_t)"]);
}

/// Builds the shipped policy with a module.
fn build(module: &str) -> Result<tollgate_policy::built::Built, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/tollgate");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "cil")).collect();
    paths.sort();
    let file =
        |path: &std::path::PathBuf| CilFile { name: path.display().to_string(), text: std::fs::read(path).unwrap() };
    let mut files: Vec<CilFile> = paths.iter().map(file).collect();
    files.push(CilFile { name: "module.cil".to_owned(), text: module.as_bytes().to_vec() });
    Sources::Cil { files, modules: false }.build(&Options::default()).map_err(|error| error.to_string())
}

#[test]
fn writes_blocks_that_the_shipped_policy_is_built_with() {
    let mut root = service(NGINX);
    let folders = ["/etc/notes", "/var/log/notes", "/usr/share/notes"].map(std::path::PathBuf::from).into();
    root.package = Some(Package { name: "notes".to_owned(), folders, ..Package::default() });
    for way in [Way::Learn, Way::Macro] {
        for (name, service) in [("notes", service(PYTHON)), ("web", root.clone())] {
            let mut block =
                Block::new(name, way, &service, &found(&[(tcp(8085), None), (tcp(80), Some("http_port_t"))]));
            block.remote_ports.insert(tcp(9200));
            let module = Module::of_block("x.service", &block, "2026-11-23T19:00:00.000Z", None);
            let built = build(&module.to_string()).unwrap_or_else(|error| panic!("{error}\n{module}"));
            let domain = crate::words::Domain {
                name: block.domain(),
                grants: Grants::of(&built.policy, built.server().unwrap().tables(), &block.domain()),
                ..Default::default()
            };
            let grave: Vec<String> = domain.sentences().iter().filter(|it| it.grave).map(ToString::to_string).collect();
            let of_root = ["! passes over the owners and modes of files".to_owned()];
            let expected = if way == Way::Macro && name == "web" { &of_root[..] } else { &[] };
            assert_eq!(grave, expected, "{way:?} {name}");
        }
    }
}

#[test]
fn keeps_the_promises_of_confined_services_whatever_is_learnt() {
    let block = Block::new("notes", Way::Learn, &service(PYTHON), &Found::default()).cil();
    for rule in [
        "(allow notes.t shadow_t (file (read open)))",
        "(allow notes.t notes.data_t (file (execute)))",
        "(allow notes.t notes.exec_t (file (write)))",
        "(allow notes.t unconfined_t (process (ptrace)))",
        "(allow notes.t unconfined_t (process (transition)))",
    ] {
        let error = build(&format!("{block}{rule}\n")).err();
        assert!(error.as_ref().is_some_and(|error| error.contains("neverallow")), "{rule}: {error:?}");
    }
    build(&format!("{block}(allow notes.t etc_t (file (read open)))\n")).unwrap();
}
