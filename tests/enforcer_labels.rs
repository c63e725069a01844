//! Labels of files in guests: where they come from, that they stay with their files, and that they survive the enforcer.
//!
//! The part in the guest is this program again: it starts the enforcer in its own process. Kernels are needed, from the cache
//! or a network, and mke2fs.

use std::{
    convert::Infallible,
    ffi::CStr,
    fs::{self, File},
    io::{self, Write},
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::{
            fs::{MetadataExt, symlink},
            net::UnixStream,
        },
    },
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use tollgate_abi::enforcer::TG_PLAIN_INODES;
use tollgate_enforcer::{
    daemon::{
        devices::Devices,
        enforced::Enforced,
        machine::{Machine, Ready},
    },
    datapath::Source,
    enforcer::{Enforcer, Options},
    labels::{filesystems, genfs::Genfs, object::Object, relabel::Lasts},
};
use tollgate_policy::{built::Built, model::GenFs};

use crate::program::{
    Scratch,
    guests::KERNELS,
    inside::{Guests, Played, by_path, enforcer, forget_inodes, is_enforced, is_guest, name, policy, sh},
    word,
};

/// Fails unless a test has passed in guests, which all tests of this file share, and where `/built` is the policy.
fn played(test: impl Fn()) {
    static PLAYED: OnceLock<Played> = OnceLock::new();
    let play = || {
        let guests = Guests {
            kernels: KERNELS,
            policies: &[(&[policy("labels.cil")], "/built")],
            files: &[],
            processors: 1,
            timeout: 300,
            share_srv: false,
            tests: &[
                name(labels_what_exists_by_path_by_directory_and_by_file_system),
                name(gives_no_file_the_label_of_one_that_had_its_number),
                name(labels_the_nodes_of_devices_that_appear),
                name(keeps_labels_through_links_renames_eviction_restart_and_reboot),
                name(keeps_what_a_directory_holds_when_the_directory_gets_another_label),
                name(keeps_the_labels_of_new_files_with_and_without_storage),
                name(labels_deep_directories_and_what_only_another_namespace_sees),
                name(labels_overlays_and_what_is_mounted_later),
            ],
        };
        guests.play(&Scratch::new())
    };
    PLAYED.get_or_init(play).assert_passed(test);
}

fn mount_ext4() {
    sh("mount -o loop /image /srv");
}

/// Starts enforcement: existing files get their first labels.
fn start() -> Enforcer {
    if is_enforced() {
        Enforcer::adopt(Options::default()).unwrap().stop().unwrap();
    }
    let enforcer = Enforcer::start(Options::default(), Built::open(Path::new("/built")).unwrap()).unwrap();
    let (report, written) = enforcer.labelled();
    assert_eq!((report.failures, written.failures), (0, 0), "{report:?} {written:?}");
    enforcer
}

/// The type of a file's label.
fn type_of(enforcer: &mut Enforcer, path: impl AsRef<Path>) -> String {
    type_held(enforcer, &by_path(path))
}

fn type_held(enforcer: &mut Enforcer, file: &impl AsFd) -> String {
    let sid = enforcer.label(file.as_fd()).unwrap();
    enforcer.learn();
    enforcer.contexts().text(sid).split(':').nth(2).unwrap_or_default().to_owned()
}

#[track_caller]
fn types(enforcer: &mut Enforcer, expected: &[(&str, &str)]) {
    for (path, type_) in expected {
        assert_eq!(type_of(enforcer, path), *type_, "{path}");
    }
}

/// The type in a file's attribute.
fn kept(path: &str) -> Option<String> {
    let file = by_path(path);
    let context = Object::anywhere(file.as_fd()).unwrap().attribute().unwrap()?;
    Some(context.split(':').nth(2).unwrap_or_default().to_owned())
}

fn set(enforcer: &mut Enforcer, path: &str, type_: &str) -> Lasts {
    let sid = enforcer.intern(&format!("u:object_r:{type_}:s0")).unwrap();
    enforcer.set_label(by_path(path).as_fd(), sid).unwrap()
}

/// The machine as after a reboot: no map, no inode in memory, the file system mounted again.
fn reboot(enforcer: Enforcer) -> Enforcer {
    enforcer.stop().unwrap();
    sh("umount /srv");
    mount_ext4();
    start()
}

#[test]
fn labels_what_exists_by_path_by_directory_and_by_file_system() {
    if !is_guest() {
        return played(labels_what_exists_by_path_by_directory_and_by_file_system);
    }
    mount_ext4();
    sh("mkdir -p /srv/a/b /srv/public /srv/spool; echo > /srv/a/b/x; echo > /srv/a/b/secret; echo > /srv/public/y; \
        mkfifo /srv/a/fifo; echo > /srv/spool/z; mkdir /other; mount -t tmpfs none /other; echo > /other/x");
    symlink("/nowhere", "/srv/public/link").unwrap();
    let (pipe, _other) = UnixStream::pair().unwrap();
    // SAFETY: the name ends in NUL, and the descriptor is a new one.
    let memory = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"memory".as_ptr(), 0)) };
    let deleted = File::create("/srv/public/deleted").unwrap();
    fs::remove_file("/srv/public/deleted").unwrap();
    let mut enforcer = start();
    types(
        &mut enforcer,
        &[
            ("/srv", "data_t"),
            ("/srv/a/b/x", "data_t"),
            ("/srv/a/fifo", "data_t"),
            ("/srv/a/b/secret", "secret_t"),
            ("/srv/public/y", "public_t"),
            ("/srv/public/link", "public_t"),
            ("/srv/spool", "spool_t"),
            // The expression of the whole tree, because the directory's is for directories alone.
            ("/srv/spool/z", "data_t"),
            ("/other/x", "tmp_t"),
            ("/image", "file_t"),
            ("/proc/version", "proc_t"),
            ("/proc/sys/net/core", "net_t"),
            ("/proc/sys/kernel", "proc_t"),
        ],
    );
    assert_eq!(type_held(&mut enforcer, &pipe), "unconfined_t");
    assert_eq!(type_held(&mut enforcer, &memory), "tmp_t");
    assert_eq!(type_held(&mut enforcer, &deleted), "file_t");
    let attributes = [("/srv", Some("data_t")), ("/srv/a/b/x", None), ("/srv/a/b/secret", Some("secret_t"))];
    for (path, type_) in attributes {
        assert_eq!(kept(path).as_deref(), type_, "{path}");
    }
}

#[test]
fn keeps_labels_through_links_renames_eviction_restart_and_reboot() {
    if !is_guest() {
        return played(keeps_labels_through_links_renames_eviction_restart_and_reboot);
    }
    mount_ext4();
    sh(
        "mkdir -p /srv/a /srv/public; echo > /srv/a/linked; echo > /srv/a/moved; mkdir /srv/a/tree; echo > /srv/a/tree/x",
    );
    let mut enforcer = start();
    sh("ln /srv/a/linked /srv/public/linked; mv /srv/a/moved /srv/public/moved; mv /srv/a/tree /srv/public/tree; \
        echo > /srv/a/named; echo > /srv/a/secret; ln -s x /srv/public/link");
    let expected = [
        ("/srv/a/linked", "data_t"),
        ("/srv/public/linked", "data_t"),
        ("/srv/public/moved", "data_t"),
        ("/srv/public/tree/x", "data_t"),
        ("/srv/a/named", "secret_t"),
        // It was created under enforcement, so no path determines its label, but its directory does.
        ("/srv/a/secret", "data_t"),
        ("/srv/public/link", "public_t"),
    ];
    types(&mut enforcer, &expected);
    forget_inodes();
    types(&mut enforcer, &expected);
    let written = enforcer.write_labels().unwrap();
    assert_eq!((written.failures, written.unsupported), (0, 0), "{written:?}");
    for path in ["/srv/public/linked", "/srv/public/moved", "/srv/public/tree", "/srv/a/named"] {
        assert!(kept(path).is_some(), "{path}");
    }
    drop(enforcer);
    sh("mkdir /srv/b; echo > /srv/b/named");
    let mut enforcer = Enforcer::adopt(Options::default()).unwrap();
    types(&mut enforcer, &expected);
    assert_eq!((enforcer.catch_up(), kept("/srv/b/named").as_deref()), (Vec::new(), Some("secret_t")));
    let mut enforcer = reboot(enforcer);
    types(&mut enforcer, &expected);
    let (report, written) = enforcer.labelled();
    assert!(report.attributes >= 6 && written.written == 0, "{report:?} {written:?}");
}

/// More files than there are places for plain inodes. The first ones have no storage, the last ones have.
#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_the_labels_of_new_files_with_and_without_storage() {
    if !is_guest() {
        return played(keeps_the_labels_of_new_files_with_and_without_storage);
    }
    mount_ext4();
    sh("mkdir -p /srv/a /srv/b /other; mount -t tmpfs none /other");
    let mut enforcer = start();
    set(&mut enforcer, "/srv/a", "public_t");
    set(&mut enforcer, "/other", "public_t");
    sh("echo > /srv/a/first; echo > /srv/a/moved; echo > /other/first");
    for number in 0..TG_PLAIN_INODES + 1000 {
        File::create(format!("/other/{number}")).unwrap();
    }
    sh("echo > /srv/a/last; echo > /other/last");
    let last = format!("/other/{}", TG_PLAIN_INODES + 999);
    types(&mut enforcer, &[("/other/0", "public_t"), ("/other/1000", "public_t"), (&last, "public_t")]);
    // A file takes its label along, and a directory's new label is for what is made there from then on.
    sh("mv /srv/a/moved /srv/b/moved");
    set(&mut enforcer, "/srv/a", "data_t");
    sh("echo > /srv/a/new");
    let kept = [("/srv/a/first", "public_t"), ("/srv/a/last", "public_t"), ("/srv/b/moved", "public_t")];
    types(&mut enforcer, &kept);
    types(&mut enforcer, &[("/srv/a/new", "data_t"), ("/srv/b", "data_t")]);
    forget_inodes();
    types(&mut enforcer, &kept);
    // The memory of deleted files becomes that of others, in a directory with another label.
    sh("rm -r /other/[0-9]*; mkdir /other/more");
    set(&mut enforcer, "/other/more", "data_t");
    for number in 0..1000 {
        File::create(format!("/other/more/{number}")).unwrap();
    }
    let more: Vec<String> = (0..1000).map(|number| format!("/other/more/{number}")).collect();
    more.iter().for_each(|path| types(&mut enforcer, &[(path, "data_t")]));
    types(&mut enforcer, &[("/other/first", "public_t"), ("/other/last", "public_t")]);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_what_a_directory_holds_when_the_directory_gets_another_label() {
    if !is_guest() {
        return played(keeps_what_a_directory_holds_when_the_directory_gets_another_label);
    }
    mount_ext4();
    sh("mkdir -p /srv/a/b; echo > /srv/a/x; echo > /srv/a/b/y");
    let mut enforcer = start();
    assert_eq!(set(&mut enforcer, "/srv/a", "public_t"), Lasts::Durably);
    assert_eq!(set(&mut enforcer, "/proc/version", "public_t"), Lasts::UntilUnmount);
    sh("echo > /srv/a/new");
    let expected = [
        ("/srv/a", "public_t"),
        ("/srv/a/x", "data_t"),
        ("/srv/a/b", "data_t"),
        ("/srv/a/b/y", "data_t"),
        ("/srv/a/new", "public_t"),
    ];
    types(&mut enforcer, &expected);
    types(&mut enforcer, &[("/proc/version", "public_t")]);
    forget_inodes();
    types(&mut enforcer, &expected);
    enforcer.write_labels().unwrap();
    let mut enforcer = reboot(enforcer);
    types(&mut enforcer, &expected);
    assert_eq!(
        enforcer.default_label(Path::new("/srv/a"), libc::S_IFDIR).unwrap().as_deref(),
        Some("u:object_r:data_t:s0")
    );
}

#[test]
#[ignore = "takes long: make test-rest"]
fn gives_no_file_the_label_of_one_that_had_its_number() {
    if !is_guest() {
        return played(gives_no_file_the_label_of_one_that_had_its_number);
    }
    mount_ext4();
    sh("mkdir /srv/spool /srv/a");
    let mut enforcer = enforcer(Options::default(), "/built");
    let mut reused = 0;
    for _ in 0..20 {
        fs::write("/srv/spool/x", "").unwrap();
        assert_eq!(type_of(&mut enforcer, "/srv/spool/x"), "item_t");
        let number = fs::metadata("/srv/spool/x").unwrap().ino();
        fs::remove_file("/srv/spool/x").unwrap();
        fs::write("/srv/a/y", "").unwrap();
        reused += u32::from(fs::metadata("/srv/a/y").unwrap().ino() == number);
        forget_inodes();
        assert_eq!(type_of(&mut enforcer, "/srv/a/y"), "data_t");
        fs::remove_file("/srv/a/y").unwrap();
    }
    assert!(reused > 0, "no number was used again: nothing was shown");
    // The label of a file that is deleted before its attribute was written is not written to another file with its number.
    fs::write("/srv/spool/x", "").unwrap();
    fs::remove_file("/srv/spool/x").unwrap();
    fs::write("/srv/a/y", "").unwrap();
    let written = enforcer.write_labels().unwrap();
    assert_eq!((written.failures, kept("/srv/a/y")), (0, None), "{written:?}");
}

const DEEP: usize = 300;
const NAME: &CStr = c"a_directory_of_thirty_letters_";

fn open_at(directory: &OwnedFd, name: &CStr) -> OwnedFd {
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name ends in NUL.
    let file = unsafe { libc::openat(directory.as_raw_fd(), name.as_ptr(), flags) };
    assert!(file >= 0, "{}", io::Error::last_os_error());
    // SAFETY: the kernel has just given it to us.
    unsafe { OwnedFd::from_raw_fd(file) }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn labels_deep_directories_and_what_only_another_namespace_sees() {
    if !is_guest() {
        return played(labels_deep_directories_and_what_only_another_namespace_sees);
    }
    mount_ext4();
    sh("mkdir /srv/spool");
    // No path is long enough for the last one.
    let mut deep = by_path("/srv");
    for _ in 0..DEEP {
        // SAFETY: the name ends in NUL.
        assert_eq!(unsafe { libc::mkdirat(deep.as_raw_fd(), NAME.as_ptr(), 0o755) }, 0);
        deep = open_at(&deep, NAME);
    }
    // SAFETY: the name ends in NUL.
    assert_eq!(unsafe { libc::mknodat(deep.as_raw_fd(), c"secret".as_ptr(), libc::S_IFREG | 0o644, 0) }, 0);
    let mut other = Command::new("unshare")
        .args([
            "-m",
            "sh",
            "-c",
            "mkdir /private; mount -t tmpfs none /private; echo > /private/x; echo; exec sleep 1000",
        ])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    io::Read::read_exact(&mut other.stdout.take().unwrap(), &mut [0]).unwrap();
    let mut enforcer = start();
    let file = open_at(&deep, c"secret");
    assert_eq!(type_held(&mut enforcer, &file), "secret_t");
    let private = PathBuf::from(format!("/proc/{}/root/private/x", other.id()));
    assert_eq!(type_of(&mut enforcer, private), "tmp_t");
    // What is unmounted here still exists, and gets labels.
    drop((deep, file));
    sh("umount /srv");
    let item = format!("/proc/{}/root/srv/spool/x", other.id());
    fs::write(&item, "").unwrap();
    assert_eq!(kept(&item), None);
    let written = enforcer.write_labels().unwrap();
    assert_eq!((written.failures, kept(&item).as_deref()), (0, Some("item_t")), "{written:?}");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn labels_overlays_and_what_is_mounted_later() {
    if !is_guest() {
        return played(labels_overlays_and_what_is_mounted_later);
    }
    mount_ext4();
    sh("mkdir -p /srv/low/public /srv/up /srv/work /over; echo > /srv/low/public/x; echo > /srv/low/y; \
        mount -t overlay -o lowerdir=/srv/low,upperdir=/srv/up,workdir=/srv/work none /over");
    let mut enforcer = start();
    types(
        &mut enforcer,
        &[("/over/public", "public_t"), ("/over/public/x", "public_t"), ("/over/y", "data_t"), ("/over", "data_t")],
    );
    // A label of an overlay's file belongs to its upper layer's file.
    assert_eq!(set(&mut enforcer, "/over/y", "secret_t"), Lasts::Durably);
    assert_eq!(kept("/srv/up/y").as_deref(), Some("secret_t"));
    types(&mut enforcer, &[("/over/y", "secret_t"), ("/srv/up/y", "secret_t"), ("/srv/low/y", "data_t")]);
    assert!(!Path::new("/srv/up/public").exists(), "nothing was copied up to be labelled");
    sh("umount /over; umount /srv");
    mount_ext4();
    let device = {
        let number = fs::metadata("/srv").unwrap().dev();
        libc::major(number) << 20 | libc::minor(number)
    };
    assert_eq!(enforcer.catch_up(), Vec::<String>::new());
    types(&mut enforcer, &[("/srv/up/y", "secret_t"), ("/srv/low/y", "data_t")]);
    assert_eq!(enforcer.label_mount(device).unwrap().files, 0, "once is enough");
    io::stdout().flush().unwrap();
}

#[test]
#[ignore = "takes long: make test-rest"]
fn labels_the_nodes_of_devices_that_appear() {
    if !is_guest() {
        return played(labels_the_nodes_of_devices_that_appear);
    }
    let devices = Devices::listen().unwrap();
    let enforcer = enforcer(Options::default(), "/built");
    let reread = Box::new(|| Err("it is not read again".to_owned()));
    let (built, network) = ("built".into(), Source::default());
    let mut enforced = Enforced::new(enforcer, devices.into(), built, network, reread, Path::new("/run")).unwrap();
    let control = File::open("/dev/loop-control").unwrap();
    for (number, type_) in [(20, "item_t"), (30, "tmp_t")] {
        // SAFETY: LOOP_CTL_ADD takes a number.
        let added = unsafe { libc::ioctl(control.as_raw_fd(), 0x4c80, number) };
        assert_eq!(added, number, "{}", io::Error::last_os_error());
        let node = by_path(format!("/dev/loop{number}"));
        for (wakes, type_) in [(0, "tmp_t"), (1, type_)] {
            let all = Ready(enforced.wakes());
            (0..wakes).for_each(|_| enforced.wake(&all));
            let label = enforced.labels(node.as_fd()).unwrap().object;
            let context = enforced.text(label).unwrap();
            assert_eq!(context.split(':').nth(2), Some(type_), "/dev/loop{number}");
        }
    }
}

/// SELinux's rule: the longest of the paths with which `path` begins, if it is for any class.
fn by_strings<'p>(statements: &[&'p GenFs], path: &str) -> Option<&'p GenFs> {
    let matching = statements.iter().filter(|statement| path.starts_with(&statement.path));
    matching.max_by_key(|statement| statement.path.len()).copied()
}

#[test]
fn labels_debians_paths_as_selinuxs_rule_does_and_within_the_map() {
    let scratch = Scratch::new();
    let built = scratch.path("built");
    scratch.run(&["policy", "debian", "default", "-o", word(&built)]).with(0);
    let policy = Built::open(&built).unwrap().policy;
    let mut contexts = Vec::new();
    let found = filesystems::of(&policy, &mut |context| {
        contexts.push(context.clone());
        Ok::<_, Infallible>(contexts.len() as u32 - 1)
    });
    let found = found.unwrap();
    assert_eq!(found.unsupported, [""; 0]);
    assert!(found.genfs.len() < 4096 / 2 && found.filesystems.len() < 256 / 2, "{} entries", found.genfs.len());
    let genfs = Genfs::new(&found.genfs);
    let mut compared = 0;
    for name in ["proc", "sysfs", "debugfs", "cgroup", "cgroup2", "tracefs"] {
        let statements: Vec<&GenFs> = policy.genfs.iter().filter(|statement| statement.name == name).collect();
        let key = filesystems::name(name).unwrap();
        let Some((_, root)) = found.filesystems.iter().find(|(own, _)| *own == key) else { continue };
        let ends = ["", "x", "/x", "/x/y", "x/y"];
        let paths = statements.iter().flat_map(|statement| ends.map(|end| format!("{}{end}", statement.path)));
        for path in paths.map(|path| path.replace("//", "/")) {
            let (mut sid, mut node) = (root.sid, root.node);
            for name in path.split('/').filter(|name| !name.is_empty()) {
                if let Some(label) = genfs.find(node, name.as_bytes()) {
                    (sid, node) = (label.sid, label.node);
                }
            }
            let expected = by_strings(&statements, &path).map(|statement| &statement.context);
            assert_eq!(contexts.get(sid as usize), expected, "{name} {path}");
            compared += 1;
        }
    }
    assert!(compared > 120, "{compared} paths");
}
