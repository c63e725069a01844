//! Network namespaces: found, entered, and recognized when something changes in them.
//!
//! A socket or a descriptor would keep a namespace, and its devices, after its last process. So the daemon holds none: it
//! remembers the number of the namespace's file, and gives it a number in its own namespace (nsid), with which the kernel
//! names the namespace in announcements, and announces its end.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, RawFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
    thread,
};

use nix::{
    errno::Errno,
    sched::{CloneFlags, setns},
};
use tollgate_client::pidfd;

use super::netlink::{self, Request, Socket};

/// Attributes of a message about numbers of namespaces (NETNSA_...).
const NSID: u16 = 1;
const FD: u16 = 3;
/// Length of struct rtgenmsg, with which they begin.
const FIXED: usize = 1;

/// Asks for a socket's namespace (linux/sockios.h).
const SIOCGSKNS: libc::Ioctl = 0x894C;
/// Asks for the user namespace that a namespace belongs to (linux/nsfs.h), and the number of the machine's own
/// (linux/proc_ns.h).
const NS_GET_USERNS: libc::Ioctl = 0xb701;
const PROC_USER_INIT_INO: u64 = 0xEFFF_FFFD;
/// How many descriptors of a process are looked at. What is kept by another one has no packets while it is not found.
const MAX_DESCRIPTORS: usize = 4096;

/// The network namespace of a process; an error: the process has ended.
pub fn of_process(process: u32) -> io::Result<File> {
    File::open(format!("/proc/{process}/ns/net"))
}

/// The number of a namespace's file. Another namespace may have it later.
pub fn number(namespace: &File) -> io::Result<u64> {
    namespace.metadata().map(|found| found.ino())
}

/// A namespace that is open, and a process in it; 0: none is known.
#[derive(Debug)]
pub struct Open {
    /// Its file.
    pub file: File,
    /// The process.
    pub process: u32,
}

/// The namespaces that processes or mounts have, by the numbers of their files.
#[must_use]
pub fn all() -> BTreeMap<u64, Open> {
    let mut found = BTreeMap::new();
    let of_processes = processes().filter_map(|process| Some(Open { file: of_process(process).ok()?, process }));
    let mounted = mounted().into_iter().filter_map(|path| Some(Open { file: File::open(path).ok()?, process: 0 }));
    for namespace in of_processes.chain(mounted) {
        if let Ok(number) = number(&namespace.file) {
            found.entry(number).or_insert(namespace);
        }
    }
    found
}

/// Namespaces that are looked for one after the other. All processes are looked at once at most, and so are the descriptors of
/// each: a process may keep thousands of namespaces.
#[derive(Debug, Default)]
pub struct Others {
    all: Option<BTreeMap<u64, Open>>,
    /// Of each process.
    kept: BTreeMap<u32, Kept>,
}

impl Others {
    /// The namespace with this number. `process` was seen in it, or with a socket there, so it is looked at first.
    #[must_use]
    pub fn find(&mut self, wanted: u64, process: u32) -> Option<Open> {
        let likely = of_threads(process, wanted).or_else(|| self.kept(process, wanted));
        let likely = likely.map(|file| Open { file, process });
        likely.or_else(|| self.all.get_or_insert_with(all).remove(&wanted))
    }

    /// The namespace with this number, which nothing but descriptors keeps.
    #[must_use]
    pub fn search(&mut self, wanted: u64) -> Option<Open> {
        processes().find_map(|process| self.kept(process, wanted).map(|file| Open { file, process }))
    }

    fn kept(&mut self, process: u32, wanted: u64) -> Option<File> {
        self.kept.entry(process).or_insert_with(|| Kept::by(process)).open(process, wanted)
    }
}

/// The namespace with this number, if a thread of a process is in it.
fn of_threads(process: u32, wanted: u64) -> Option<File> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut found = threads.filter_map(|thread| File::open(thread.path().join("ns/net")).ok());
    found.find(|file| number(file).is_ok_and(|own| own == wanted))
}

/// The namespaces that a process keeps by descriptors, and by which: one of a namespace, or a socket that was made there. The
/// process itself may have moved on. All of them are kept: any of them may be closed before the namespace is opened.
#[derive(Debug, Default)]
struct Kept(BTreeMap<u64, Vec<RawFd>>);

impl Kept {
    fn by(process: u32) -> Self {
        let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let mut kept = Self::default();
        let Ok(itself) = pidfd::open(process.cast_signed()) else { return kept };
        let found = entries.take(MAX_DESCRIPTORS).filter_map(|entry| {
            let descriptor = entry.file_name().to_str()?.parse().ok()?;
            let namespace = of_descriptor(process, itself.as_fd(), descriptor)?;
            Some((number(&namespace).ok()?, descriptor))
        });
        for (namespace, descriptor) in found {
            kept.0.entry(namespace).or_default().push(descriptor);
        }
        kept
    }

    /// Another file may have a descriptor by now.
    fn open(&self, process: u32, wanted: u64) -> Option<File> {
        let descriptors = self.0.get(&wanted)?;
        let itself = pidfd::open(process.cast_signed()).ok()?;
        let mut namespaces = descriptors.iter().filter_map(|each| of_descriptor(process, itself.as_fd(), *each));
        namespaces.find(|namespace| number(namespace).is_ok_and(|own| own == wanted))
    }
}

/// The namespace that a descriptor of a process keeps.
fn of_descriptor(process: u32, itself: BorrowedFd<'_>, descriptor: RawFd) -> Option<File> {
    let path = format!("/proc/{process}/fd/{descriptor}");
    match fs::read_link(&path).ok()?.to_str()?.split_once(':')?.0 {
        "net" => File::open(path).ok(),
        "socket" => of_socket(pidfd::descriptor(itself, descriptor).ok()?.as_fd()).ok(),
        _ => None,
    }
}

/// Whether a user is root in a namespace: its user namespace is not the machine's own.
#[must_use]
pub fn is_users(namespace: &File) -> bool {
    // SAFETY: the request takes no argument, and the descriptor is open.
    let owner = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_USERNS) };
    let Ok(owner) = Errno::result(owner) else { return true };
    // SAFETY: the kernel has just made the descriptor, and nothing else has it.
    let owner = unsafe { File::from_raw_fd(owner) };
    !number(&owner).is_ok_and(|own| own == PROC_USER_INIT_INO)
}

/// The namespace in which a socket was made.
fn of_socket(socket: BorrowedFd<'_>) -> io::Result<File> {
    // SAFETY: the request takes no argument, and the descriptor is open.
    let file = Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS) })?;
    // SAFETY: the kernel has just made the descriptor, and nothing else has it.
    Ok(unsafe { File::from_raw_fd(file) })
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Where namespaces are mounted (ip-netns(8)).
fn mounted() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().filter_map(mount).map(Into::into).collect()
}

/// The path of a mount, if that is a network namespace.
fn mount(line: &str) -> Option<&Path> {
    let words: Vec<&str> = line.split(' ').collect();
    let [_, _, _, root, path, ..] = words[..] else { return None };
    root.starts_with("net:[").then_some(Path::new(path))
}

/// Does work in a namespace, by a thread that enters it.
pub fn enter<T: Send>(namespace: BorrowedFd<'_>, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            work()
        });
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace has failed")))
    })
}

/// The number (nsid) by which the socket's namespace knows another one, or itself. It gets one if it has none.
pub fn nsid(socket: &Socket, namespace: &File) -> io::Result<i32> {
    let about = |kind| {
        let request = Request::new(kind, 0, &[0; FIXED]);
        request.number(FD, namespace.as_fd().as_raw_fd().cast_unsigned())
    };
    match socket.ask(about(libc::RTM_NEWNSID).number(NSID, (-1_i32).cast_unsigned())) {
        Err(cause) if cause.raw_os_error() != Some(libc::EEXIST) => return Err(cause),
        _ => {}
    }
    let answer = socket.ask(about(libc::RTM_GETNSID))?;
    let found = answer.iter().find_map(|message| netlink::number(message.split(FIXED)?.1, NSID));
    found.map(u32::cast_signed).filter(|number| *number >= 0).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Whether the socket's namespace knows another one by this number (nsid): it does until that one's end.
#[must_use]
pub fn is_known(socket: &Socket, nsid: i32) -> bool {
    let request = Request::new(libc::RTM_GETNSID, 0, &[0; FIXED]).number(NSID, nsid.cast_unsigned());
    !socket.ask(request).is_err_and(|cause| cause.raw_os_error() == Some(libc::ENOENT))
}

/// The number in an announcement about numbers of namespaces.
pub(super) fn announced(message: &netlink::Message) -> Option<i32> {
    netlink::number(message.split(FIXED)?.1, NSID).map(u32::cast_signed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_namespace_of_this_process() {
        let own = of_process(std::process::id()).unwrap();
        let number = number(&own).unwrap();
        assert!(all().contains_key(&number));
        let mut others = Others::default();
        assert!(others.find(number, std::process::id()).is_some() && others.find(number, 0).is_some());
        assert!(others.find(1, std::process::id()).is_none());
        assert!(!is_known(&Socket::open().unwrap(), 1_000_000));
    }

    #[test]
    fn finds_a_namespace_that_a_descriptor_keeps() {
        let own = of_process(std::process::id()).unwrap();
        let wanted = number(&own).unwrap();
        let mut others = Others::default();
        assert!(others.kept(std::process::id(), wanted).is_some() && others.search(wanted).is_some());
        assert!(others.kept(std::process::id(), 1).is_none() && others.search(1).is_none());
    }

    #[test]
    fn finds_a_namespace_after_a_descriptor_that_kept_it_is_closed() {
        let own = [(); 2].map(|()| of_process(std::process::id()).unwrap());
        let (wanted, descriptors) = (number(&own[0]).unwrap(), own.each_ref().map(AsRawFd::as_raw_fd));
        let kept = Kept(BTreeMap::from([(wanted, descriptors.into())]));
        let [closed, open] = own;
        drop(closed);
        assert!(kept.open(std::process::id(), wanted).is_some());
        drop(open);
    }

    #[test]
    fn knows_where_namespaces_are_mounted() {
        let netns = "541 540 0:4 net:[4026532345] /run/netns/a rw shared:1 - nsfs nsfs rw";
        assert_eq!(mount(netns), Some(Path::new("/run/netns/a")));
        for other in [
            "541 540 0:4 mnt:[4026532345] /run/mnt rw - nsfs nsfs rw",
            "25 1 0:22 / /run rw,nosuid shared:5 - tmpfs tmpfs rw",
            "",
        ] {
            assert_eq!(mount(other), None, "{other}");
        }
    }
}
