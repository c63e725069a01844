use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    os::{fd::AsFd, unix::fs::symlink},
    path::Path,
};

use nix::{
    fcntl::{OFlag, open, openat},
    sys::stat::{Mode, mkdirat},
};
use tempfile::TempDir;

use super::{Report, Rule, Tree, Walker};
use crate::labels::{
    Contexts, Label, Origin, Sid, Sink,
    checkpoint::Doubts,
    file_contexts::FileContexts,
    genfs::{self, Genfs},
    object::Object,
};

/// The SID of `u:r:tN` is N.
struct Numbered;

impl Contexts for Numbered {
    fn sid(&mut self, context: &str) -> io::Result<Option<Sid>> {
        Ok(context.strip_prefix("u:r:t").and_then(|number| number.parse().ok()))
    }
}

/// Remembers labels by inode.
#[derive(Default)]
struct Memory {
    labels: HashMap<u64, Label>,
    order: Vec<u64>,
    refuses: Option<u64>,
    /// The most descriptors that were open at a time, if somebody wants to know.
    descriptors: Option<usize>,
}

impl Sink for Memory {
    fn label(&mut self, object: &Object<'_>, label: Label) -> io::Result<Sid> {
        if self.refuses == Some(object.inode()) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        if let Some(most) = &mut self.descriptors {
            *most = (*most).max(fs::read_dir("/proc/self/fd")?.count());
        }
        self.labels.insert(object.inode(), label);
        self.order.push(object.inode());
        Ok(label.sid)
    }

    fn hold(&mut self, object: &Object<'_>, sid: Sid) -> io::Result<()> {
        let label = Label { sid, directory: None, node: 0, origin: Origin::Inherited };
        self.labels.entry(object.inode()).or_insert(label);
        Ok(())
    }

    fn complete(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn sid(&self, path: &Path) -> Option<Sid> {
        use std::os::unix::fs::MetadataExt;
        self.labels.get(&fs::symlink_metadata(path).unwrap().ino()).map(|label| label.sid)
    }
}

const STORED: Rule = Rule::Stored { default: 1, kept: true };

fn walk(root: &Path, rule: Rule, file_contexts: Option<&str>, genfs: &Genfs, sink: &mut Memory) -> Report {
    let file_contexts = file_contexts.map(|text| FileContexts::new(text).unwrap());
    let tree = Tree { root: File::open(root).unwrap().into(), path: Some("/srv".into()), device: 7, rule };
    let mut walker = Walker {
        contexts: &mut Numbered,
        file_contexts: file_contexts.as_ref(),
        genfs,
        sink,
        report: Report::default(),
        doubts: Doubts::SinceCheckpoint,
    };
    walker.walk(&tree);
    walker.report
}

fn folder(directories: &[&str], files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for directory in directories {
        fs::create_dir_all(folder.path().join(directory)).unwrap();
    }
    for file in files {
        File::create(folder.path().join(file)).unwrap();
    }
    folder
}

#[test]
fn labels_by_path_and_kind_and_what_nothing_matches_like_its_directory() {
    let folder = folder(&["a/b", "c"], &["a/x", "a/b/y", "c/x"]);
    symlink("/nowhere", folder.path().join("a/link")).unwrap();
    let text = "/srv/a u:r:t2\n/srv/a/b/y u:r:t3\n/srv/c -- u:r:t9\n/srv/a/l.* -l u:r:t4\n";
    let mut sink = Memory::default();
    let report = walk(folder.path(), STORED, Some(text), &Genfs::default(), &mut sink);
    let expected = [("", 1), ("a", 2), ("a/x", 2), ("a/b", 2), ("a/b/y", 3), ("a/link", 4), ("c", 1), ("c/x", 1)];
    for (path, sid) in expected {
        assert_eq!(sink.sid(&folder.path().join(path)), Some(sid), "{path}");
    }
    // The root's, a's, y's and the link's are their own.
    assert_eq!((report.files, report.directories, report.own, report.failures), (8, 4, 4, 0));
}

#[test]
fn labels_a_directory_before_what_is_in_it_and_the_root_again_when_all_is_done() {
    let folder = folder(&["a/b/c"], &["a/b/c/d"]);
    let mut sink = Memory::default();
    walk(folder.path(), STORED, None, &Genfs::default(), &mut sink);
    let inodes = ["", "a", "a/b", "a/b/c", "a/b/c/d", ""].map(|path| {
        let file = File::open(folder.path().join(path)).unwrap();
        Object::anywhere(file.as_fd()).unwrap().inode()
    });
    assert_eq!(sink.order, inodes);
}

#[test]
fn writes_the_roots_label_down_only_when_nothing_failed() {
    let folder = folder(&[], &["a"]);
    let inode = |path: &Path| Object::anywhere(File::open(path).unwrap().as_fd()).unwrap().inode();
    let root = inode(folder.path());
    for (refuses, origin) in [(None, Origin::FileContexts), (Some(inode(&folder.path().join("a"))), Origin::FileSystem)]
    {
        let mut sink = Memory { refuses, ..Memory::default() };
        walk(folder.path(), STORED, Some("/srv u:r:t2\n"), &Genfs::default(), &mut sink);
        assert_eq!((sink.labels[&root].sid, sink.labels[&root].origin), (2, origin));
    }
}

#[test]
fn writes_no_label_down_where_nothing_outlives_the_run() {
    let folder = folder(&[], &["a"]);
    let rule = Rule::Stored { default: 1, kept: false };
    let mut sink = Memory::default();
    let report = walk(folder.path(), rule, Some("/srv/a u:r:t2\n"), &Genfs::default(), &mut sink);
    assert_eq!((sink.sid(&folder.path().join("a")), report.own), (Some(2), 0));
}

#[test]
fn writes_down_the_labels_of_files_with_several_names() {
    let folder = folder(&[], &["a", "c"]);
    fs::hard_link(folder.path().join("a"), folder.path().join("b")).unwrap();
    let report = walk(folder.path(), STORED, None, &Genfs::default(), &mut Memory::default());
    // The root, and a under both of its names.
    assert_eq!((report.files, report.own), (4, 3));
}

#[test]
fn tells_what_could_not_be_labelled_and_goes_on() {
    let folder = folder(&["a"], &["a/x", "b"]);
    let file = File::open(folder.path().join("b")).unwrap();
    let refuses = Some(Object::anywhere(file.as_fd()).unwrap().inode());
    let mut sink = Memory { refuses, ..Memory::default() };
    let report = walk(folder.path(), STORED, None, &Genfs::default(), &mut sink);
    assert_eq!((report.files, report.failures), (3, 1));
    assert!(report.messages[0].starts_with("/srv/b: "), "{:?}", report.messages);
}

#[test]
fn refuses_a_context_of_file_contexts_that_the_policy_does_not_have() {
    let folder = folder(&[], &["a"]);
    let mut sink = Memory::default();
    let report = walk(folder.path(), STORED, Some("/srv/a u:r:unknown\n"), &Genfs::default(), &mut sink);
    assert_eq!((report.failures, sink.sid(&folder.path().join("a"))), (1, None));
}

#[test]
fn labels_directories_deeper_than_descriptors_and_paths_longer_than_the_systems() {
    const DEEP: usize = 400;
    let folder = tempfile::tempdir().unwrap();
    let name = "n".repeat(20);
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    let mut directory = open(folder.path(), flags, Mode::empty()).unwrap();
    let mut inodes = Vec::new();
    for _ in 0..DEEP {
        for name in [name.as_str(), "z"] {
            mkdirat(&directory, name, Mode::S_IRWXU).unwrap();
        }
        let sibling = openat(&directory, "z", flags, Mode::empty()).unwrap();
        inodes.push(Object::anywhere(sibling.as_fd()).unwrap().inode());
        directory = openat(&directory, name.as_str(), flags, Mode::empty()).unwrap();
    }
    let text = format!("/srv(/{name}){{{DEEP}}} u:r:t2\n");
    let mut sink = Memory { descriptors: Some(0), ..Memory::default() };
    let report = walk(folder.path(), STORED, Some(&text), &Genfs::default(), &mut sink);
    assert_eq!((report.directories, report.failures), (DEEP as u64 * 2 + 1, 0), "{:?}", report.messages);
    assert!(sink.descriptors < Some(DEEP / 2), "{:?} descriptors", sink.descriptors);
    let deepest = Object::anywhere(directory.as_fd()).unwrap().inode();
    assert_eq!(sink.labels[&deepest].sid, 2);
    assert!(inodes.iter().all(|inode| sink.labels[inode].sid == 1));
}

#[test]
fn labels_by_names_where_policy_says_so() {
    let folder = folder(&["1/sys", "sys/net", "system"], &["1/mem", "sys/net/unix", "sys/x", "system/x"]);
    symlink("sys/net", folder.path().join("net")).unwrap();
    let mut tree = genfs::Tree::default();
    for (path, sid) in [("/", 2), ("/sys", 3), ("/sys/net", 4), ("/net", 5)] {
        tree.insert(path, sid).unwrap();
    }
    let genfs = Genfs::new(&tree.entries(1, 9));
    let walked = |links, processes| {
        let mut sink = Memory::default();
        walk(folder.path(), Rule::ByPath { node: 1, sid: 2, links, processes }, None, &genfs, &mut sink);
        let paths = ["", "1", "1/mem", "sys", "sys/x", "sys/net/unix", "system/x", "net"];
        paths.map(|path| sink.sid(&folder.path().join(path)))
    };
    let [two, three, four, five] = [2, 3, 4, 5].map(Some);
    assert_eq!(walked(false, false), [two, two, two, three, three, four, three, two]);
    assert_eq!(walked(true, false), [two, two, two, three, three, four, three, five]);
    assert_eq!(walked(false, true), [two, None, None, three, three, four, three, two]);
}

#[test]
fn labels_a_root_that_is_a_file() {
    let folder = folder(&[], &["a"]);
    let mut sink = Memory::default();
    let report = walk(&folder.path().join("a"), STORED, None, &Genfs::default(), &mut sink);
    assert_eq!((report.files, report.failures, sink.sid(&folder.path().join("a"))), (1, 0, Some(1)));
}

#[test]
fn tells_no_control_character_of_a_path() {
    let mut report = Report::default();
    report.fail("/srv/a\x1b[31m\nb", "it is not there");
    assert_eq!(report.messages, ["/srv/a\\u{1b}[31m\\nb: it is not there"]);
}

/// Says that a file has another label than the walk gives it.
struct Noted {
    inode: u64,
    memory: Memory,
}

impl Sink for Noted {
    fn label(&mut self, object: &Object<'_>, label: Label) -> io::Result<Sid> {
        self.memory.label(object, label)?;
        Ok(if object.inode() == self.inode { 9 } else { label.sid })
    }

    fn hold(&mut self, object: &Object<'_>, sid: Sid) -> io::Result<()> {
        self.memory.hold(object, sid)
    }

    fn complete(&mut self, device: u32) -> io::Result<()> {
        self.memory.complete(device)
    }
}

#[test]
fn gives_what_is_in_a_directory_the_label_that_was_noted_for_it() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let (above, file) = (folder.path().join("above"), folder.path().join("above/below/file"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "").unwrap();
    let mut sink = Noted { inode: fs::metadata(&above).unwrap().ino(), memory: Memory::default() };
    let root = File::open(folder.path()).unwrap().into();
    let genfs = Genfs::default();
    let mut walker = Walker {
        contexts: &mut Numbered,
        file_contexts: None,
        genfs: &genfs,
        sink: &mut sink,
        report: Report::default(),
        doubts: Doubts::SinceCheckpoint,
    };
    walker.walk(&Tree { root, path: None, device: 7, rule: STORED });
    assert_eq!(sink.memory.sid(&file), Some(9));
}
