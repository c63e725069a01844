//! The headers of the BPF programs, as whoever opens one finds them: each compiles by itself, and none is needed by what it
//! needs itself. So another object file takes those that it wants.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    thread,
};

use libbpf_rs::{MapType, ObjectBuilder, OpenObject, libbpf_sys};

fn bpf() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf")
}

/// The headers below bpf/, by their paths there.
fn headers() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["", "programs", "datapath", "guard"] {
        for entry in fs::read_dir(bpf().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "h") {
                found.push(path.strip_prefix(bpf()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort_unstable();
    assert!(found.len() > 50, "{found:?}");
    found
}

fn text(header: &str) -> String {
    fs::read_to_string(bpf().join(header)).unwrap()
}

/// libbpf's own headers, in a folder.
fn libbpf() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bpf")).unwrap();
    for (name, text) in libbpf_sys::API_HEADERS {
        fs::write(folder.path().join("bpf").join(name), text).unwrap();
    }
    folder
}

/// clang, as build.rs calls it.
fn clang(libbpf: &Path) -> Command {
    let mut command = Command::new(env::var_os("CLANG").unwrap_or("clang".into()));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["-O2", "-g", "-target", "bpf", "-D__TARGET_ARCH_x86"]);
    command
        .args(env!("TOLLGATE_BPF_ARGUMENTS").split(' '))
        .args(["-fno-stack-protector", "-I", "bpf", "-I"])
        .arg(libbpf);
    command
}

/// What clang says of a text; nothing, if it is well.
fn check(text: &str, libbpf: &Path) -> String {
    let mut command = clang(libbpf);
    // Who takes one header needs not all that others have.
    command
        .args(["-Wno-unused-function", "-fsyntax-only", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    if ended.status.success() { String::new() } else { format!("{}: {said}", ended.status) }
}

#[test]
fn compiles_each_header_by_itself() {
    let (libbpf, waiting, failed) = (libbpf(), Mutex::new(headers()), Mutex::new(BTreeMap::new()));
    let next = || waiting.lock().unwrap().pop();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(header) = next() {
                    let said = check(&format!("#include \"{header}\"\n"), libbpf.path());
                    if !said.is_empty() {
                        failed.lock().unwrap().insert(header, said);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    let said: String = failed.iter().map(|(header, said)| format!("\n{header} lacks an include: {said}")).collect();
    assert!(failed.is_empty(), "{said}");
}

#[test]
fn finds_a_header_that_lacks_an_include() {
    let said = check("static inline int lacking(void) { return tg_failed(0); }\n", libbpf().path());
    assert!(said.contains("tg_failed"), "{said}");
}

/// The headers of ours that a header includes.
fn included(header: &str, text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
    let beside = Path::new(header).parent().unwrap();
    let ours = names.filter_map(|name| match name.strip_prefix("../") {
        Some(above) => Some(beside.parent()?.join(above)),
        None => Some(beside.join(name)),
    });
    let ours = ours.filter(|path| bpf().join(path).exists());
    ours.map(|path| path.to_str().unwrap().to_owned()).collect()
}

/// A circle in a graph, as the headers that lead from one back to itself.
fn circle(graph: &BTreeMap<String, Vec<String>>) -> Option<Vec<String>> {
    fn visit(
        at: &String,
        path: &mut Vec<String>,
        done: &mut BTreeSet<String>,
        graph: &BTreeMap<String, Vec<String>>,
    ) -> Option<Vec<String>> {
        if let Some(first) = path.iter().position(|header| header == at) {
            return Some([&path[first..], std::slice::from_ref(at)].concat());
        }
        if !done.insert(at.clone()) {
            return None;
        }
        path.push(at.clone());
        let found = graph.get(at).into_iter().flatten().find_map(|next| visit(next, path, done, graph));
        path.pop();
        found
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|header| visit(header, &mut Vec::new(), &mut done, graph))
}

#[test]
fn has_no_circle_of_includes() {
    let graph = headers().into_iter().map(|header| {
        let included = included(&header, &text(&header));
        (header, included)
    });
    let graph: BTreeMap<_, _> = graph.collect();
    assert!(graph.values().map(Vec::len).sum::<usize>() > 100, "includes are not read any more");
    assert_eq!(circle(&graph), None);
}

#[test]
fn finds_a_circle() {
    let graph = |lines: &[(&str, &[&str])]| {
        lines.iter().map(|(at, to)| ((*at).to_owned(), to.iter().map(|to| (*to).to_owned()).collect())).collect()
    };
    let found = circle(&graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &["d"]), ("d", &["b"])]));
    assert_eq!(found, Some(["b", "c", "d", "b"].map(str::to_owned).to_vec()));
    assert_eq!(circle(&graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])), None);
}

#[test]
fn includes_nothing_in_the_middle_of_a_header() {
    for header in headers() {
        let text = text(&header);
        let (_, body) = text.split_once("\n#define TOLLGATE_").unwrap_or_else(|| panic!("{header} has no guard"));
        let mut begun = false;
        for line in body.lines().skip(1).filter(|line| !line.is_empty()) {
            let includes = line.starts_with("#include");
            assert!(!(begun && includes), "{header}: `{line}` comes after a definition");
            begun |= !includes;
        }
    }
}

#[test]
fn has_programs_in_the_headers_of_programs_only() {
    for header in headers() {
        let held = text(&header).matches("SEC(\"").count() - text(&header).matches("SEC(\".").count();
        // What lists sockets is read, and attached to nothing.
        let others = ["datapath/programs.h", "datapath/sockets.h"];
        let of_guard = ["guard/exec.h", "guard/files.h", "guard/identity.h", "guard/switch.h", "guard/system.h"];
        let holds = [&others[..], &of_guard].concat().contains(&header.as_str());
        let holds = holds || header.starts_with("programs/");
        assert_eq!(held > 0, holds, "{header} has {held} programs");
    }
}

#[test]
fn names_every_header_in_the_map() {
    let map = fs::read_to_string(bpf().join("README.md")).unwrap();
    let named = |header: &String| map.contains(&format!("`{header}`"));
    let unnamed: Vec<_> = headers().into_iter().filter(|header| !named(header)).collect();
    assert!(unnamed.is_empty(), "bpf/README.md does not say what is in {unnamed:?}");
    let words = map.split('`').filter(|word| word.ends_with(".h") && !word.contains(' '));
    let gone: Vec<_> = words.filter(|word| !bpf().join(word).exists()).collect();
    assert!(gone.is_empty(), "bpf/README.md names {gone:?}, which are not there");
}

#[test]
fn gives_no_function_the_name_of_a_type() {
    let all: String = headers().iter().map(|header| text(header)).collect();
    let lines = all.lines().filter(|line| !line.starts_with([' ', '\t']));
    let types = lines.clone().filter_map(|line| {
        let rest = ["struct ", "union ", "enum "].iter().find_map(|kind| line.strip_prefix(kind))?;
        Some(rest.strip_suffix(" {")?.trim())
    });
    let functions = lines.filter(|line| line.starts_with("static ") || line.starts_with("TG_FUNCTION "));
    let functions = functions.filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next());
    let (types, functions): (BTreeSet<_>, BTreeSet<_>) = (types.collect(), functions.collect());
    assert!(types.len() > 30 && functions.len() > 250, "{} {}", types.len(), functions.len());
    assert_eq!(types.intersection(&functions).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn describes_every_map() {
    let text = text("maps.h");
    let mut maps: Vec<&str> = text.split("SEC(\".maps\")").collect();
    maps.pop();
    // The map in a map is described with the map.
    maps.retain(|map| !map.trim_start().starts_with(";\n\nstruct {\n\t__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS)"));
    assert!(maps.len() > 15, "{}", maps.len());
    for map in maps {
        let says = |words: &[&str]| words.iter().any(|word| map.contains(word));
        let whole =
            says(&["Writer:", "Writer and reader:"]) && says(&["Reader:", "Writer and reader:"]) && says(&["Size"]);
        assert!(whole, "who writes it, who reads it, why this size? {map}");
        assert!(says(&["Full", "be full", "No memory", "taken:"]), "what happens when it is full? {map}");
    }
}

fn open(object: &Path) -> OpenObject {
    ObjectBuilder::default().open_file(object).unwrap()
}

/// Each map: its type, and the sizes of a key, of a value, and of all.
fn maps(object: &OpenObject) -> BTreeMap<String, (MapType, u32, u32, u32)> {
    let maps = object.maps().map(|map| {
        let name = map.name().to_string_lossy().into_owned();
        // Of the globals libbpf says `OBJECT.bss`.
        let name = name.rsplit('.').next().unwrap().to_owned();
        (name, (map.map_type(), map.key_size(), map.value_size(), map.max_entries()))
    });
    maps.collect()
}

#[test]
fn lets_another_object_share_maps_and_decisions_without_the_hooks() {
    let libbpf = libbpf();
    let object = libbpf.path().join("second.bpf.o");
    let compiled = clang(libbpf.path())
        .args(["-DTG_CAPACITY=(4u << 20)", "-c", "tests/second.bpf.c", "-o"])
        .arg(&object)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let (first, second) = (open(Path::new(concat!(env!("OUT_DIR"), "/enforcer-4.bpf.o"))), open(&object));
    let programs: Vec<_> = second.progs().map(|program| program.name().to_string_lossy().into_owned()).collect();
    assert_eq!(programs, ["second"]);
    let (first, second) = (maps(&first), maps(&second));
    for name in ["generations", "sids", "sockets", "scratches", "bss"] {
        assert!(second.contains_key(name), "{name}: {second:?}");
    }
    for (name, shape) in &second {
        assert_eq!(first.get(name), Some(shape), "{name} cannot be shared");
    }
}
