mod fleet;
mod pretended;

use std::{
    fs::File,
    io::{BufRead, BufReader, Seek, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use pretended::{CONFINED, Pretended};
use tempfile::TempDir;
use tollgate_client::{
    Client, ClientError,
    protocol::{Acting, Attribute, Mode, Request},
};

use super::{places::MAX_OF_HOLDER, *};
use crate::contexts::Sid;

/// A daemon of a folder of its own, and what its machine knows.
struct Running {
    folder: TempDir,
    machine: Pretended,
    wish: Arc<Mutex<Option<Wish>>>,
    signals: UnixStream,
    thread: Option<JoinHandle<End>>,
}

impl Running {
    fn new() -> Self {
        Self::of(None)
    }

    /// The daemon of a node of a fleet.
    fn of(fleet: Option<Fleet>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (signals, theirs) = UnixStream::pair().unwrap();
        let (machine, wish) = (Pretended::default(), Arc::new(Mutex::new(None)));
        let mut daemon = Daemon::listen(folder.path()).unwrap();
        fleet.into_iter().for_each(|fleet| daemon.join(Ok(fleet)));
        let (mut own, wishes) = (machine.clone(), Arc::clone(&wish));
        let thread = thread::spawn(move || daemon.run(&mut own, &theirs, || wishes.lock().unwrap().take()).unwrap());
        Self { folder, machine, wish, signals, thread: Some(thread) }
    }

    fn confined(allowed: &[(Sid, Sid, &str, &str)]) -> Self {
        let running = Self::new();
        let mut known = running.machine.0.lock().unwrap();
        known.confined = true;
        known.allowed = allowed.iter().map(|(s, t, c, p)| (*s, *t, (*c).to_owned(), (*p).to_owned())).collect();
        drop(known);
        running
    }

    fn client(&self) -> Client {
        Client::connect_to(&self.folder.path().join("socket")).unwrap()
    }

    fn raw(&self) -> UnixStream {
        let socket = UnixStream::connect(self.folder.path().join("socket")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    }

    fn signal(&self, wish: Wish) {
        *self.wish.lock().unwrap() = Some(wish);
        let _ = (&self.signals).write_all(b"s");
    }

    fn done(&self) -> Vec<String> {
        self.machine.0.lock().unwrap().done.clone()
    }

    fn end(&mut self) -> End {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.signal(Wish::End);
            let _ = thread.join();
        }
    }
}

fn line(socket: &UnixStream) -> String {
    let mut line = String::new();
    let _ = BufReader::new(socket).read_line(&mut line);
    line
}

/// Greets and says hello.
fn greeted(socket: &UnixStream) {
    let hello = tollgate_client::protocol::hello(line(socket).trim_end().as_bytes()).unwrap();
    { socket }.write_all(hello.as_bytes()).unwrap();
}

fn errno(result: Result<impl std::fmt::Debug, ClientError>) -> i32 {
    match result {
        Err(ClientError::Refused(refusal)) => refusal.errno,
        other => panic!("{other:?}"),
    }
}

fn file(text: &str) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn answers_what_an_unconfined_caller_asks() {
    let running = Running::new();
    let mut client = running.client();
    assert_eq!(client.mode().unwrap(), Mode::Permissive);
    assert_eq!(client.status().unwrap().failures["no label"], 6);
    assert_eq!(client.context(Attribute::Current, None).unwrap().as_deref(), Some("sid28"));
    assert_eq!(client.context(Attribute::Exec, None).unwrap(), None);
    assert_eq!(client.text(77).unwrap(), "sid77");
    assert_eq!(errno(client.text(100)), libc::ENOENT);
    assert_eq!(client.access("a", "b", "file").unwrap(), ["read", "write"]);
    assert!(client.statistics().unwrap().is_empty());
    assert!(client.network().unwrap().zones.is_empty());
    client.set_mode(Mode::Permissive, Some("httpd_t")).unwrap();
    assert_eq!(running.done(), ["mode permissive Some(\"httpd_t\")"]);
    assert!(running.machine.0.lock().unwrap().asked.is_empty(), "an unconfined caller is asked nothing");
}

#[test]
fn hands_a_policy_and_its_sanity_questions_over() {
    let running = Running::new();
    let (policy, sanity) = (file("the policy"), file("a\tb\tfile\tread,-write\n"));
    let mut client = running.client();
    assert_eq!(client.reload(policy.as_fd(), true, Some(sanity.as_fd())).unwrap(), 7);
    assert_eq!(running.done(), ["reload the policy true 1"]);
    let wrong = file("a b file read\n");
    assert_eq!(errno(client.reload(policy.as_fd(), true, Some(wrong.as_fd()))), libc::EINVAL);
    let (pipe, _other) = nix::unistd::pipe().unwrap();
    assert_eq!(errno(client.reload(pipe.as_fd(), false, None)), libc::EINVAL);
    assert_eq!(running.done().len(), 1);
}

#[test]
fn asks_about_a_socket_by_its_own_class() {
    let running = Running::confined(&[(CONFINED, 50, "tcp_socket", "getattr")]);
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut client = running.client();
    assert_eq!(errno(client.label(socket.as_fd())), libc::EACCES);
    running.machine.0.lock().unwrap().class = Some("tcp_socket");
    assert_eq!(client.label(socket.as_fd()).unwrap(), "sid50");
}

#[test]
fn says_who_is_at_the_other_end_of_a_socket() {
    let running = Running::confined(&[(CONFINED, 50, "udp_socket", "getopt")]);
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut client = running.client();
    assert_eq!(errno(client.peer(socket.as_fd())), libc::ENOTSOCK);
    running.machine.0.lock().unwrap().class = Some("udp_socket");
    assert_eq!(client.peer(socket.as_fd()).unwrap(), None);
    running.machine.0.lock().unwrap().peer = 70;
    assert_eq!(client.peer(socket.as_fd()).unwrap().as_deref(), Some("sid70"));
    let heard = |client: &mut Client, sender: &str| client.heard(socket.as_fd(), sender.parse().unwrap()).unwrap();
    assert_eq!(heard(&mut client, "127.0.0.1:53").as_deref(), Some("sid53"));
    assert_eq!(heard(&mut client, "[::1]:54"), None);
    running.machine.0.lock().unwrap().class = Some("tcp_socket");
    assert_eq!(errno(client.peer(socket.as_fd())), libc::EACCES);
}

#[test]
fn tells_a_server_the_sids_that_it_acts_with() {
    let running =
        Running::confined(&[(CONFINED, 50, "tcp_socket", "getopt"), (CONFINED, CONFINED, "process", "setcurrent")]);
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut client = running.client();
    running.machine.0.lock().unwrap().class = Some("tcp_socket");
    let act = Request::Act(Acting::Context);
    assert_eq!(errno(client.request(&act, &[socket.as_fd()])), libc::ENOPROTOOPT);
    running.machine.0.lock().unwrap().peer = 70;
    assert_eq!(client.request(&act, &[socket.as_fd()]).unwrap(), ["40", "70"]);
    // Other threads may act for other clients.
    running.machine.0.lock().unwrap().mixed = true;
    assert_eq!(client.request(&act, &[socket.as_fd()]).unwrap(), ["40", "70"]);
    running.machine.0.lock().unwrap().allowed.clear();
    assert_eq!(errno(client.request(&act, &[socket.as_fd()])), libc::EACCES);
}

#[test]
fn refuses_to_label_what_the_policy_alone_labels() {
    let running = Running::new();
    running.machine.0.lock().unwrap().fixed = Some("by the policy alone");
    assert_eq!(errno(running.client().set_label(file("").as_fd(), "sid70")), libc::EOPNOTSUPP);
    assert_eq!(running.done(), Vec::<String>::new());
}

#[test]
fn asks_the_policy_what_selinux_asks_of_confined_callers() {
    let running = Running::confined(&[
        (CONFINED, CONFINED, "process", "setexec"),
        (CONFINED, 50, "file", "relabelfrom"),
        (CONFINED, 70, "file", "relabelto"),
        (70, 60, "filesystem", "associate"),
        (CONFINED, 2, "security", "setenforce"),
    ]);
    let mut client = running.client();
    let object = file("");
    assert_eq!(client.set_label(object.as_fd(), "sid70").unwrap(), "sid50");
    assert_eq!(running.done(), ["validate 50 70 40", "label 70"]);
    let asked: Vec<String> =
        running.machine.0.lock().unwrap().asked.iter().map(|(s, t, c, p)| format!("{s} {t} {c} {p}")).collect();
    assert_eq!(asked, ["40 50 file relabelfrom", "40 70 file relabelto", "70 60 filesystem associate"]);
    assert_eq!(errno(client.set_label(object.as_fd(), "sid71")), libc::EACCES);
    assert_eq!(errno(client.label(object.as_fd())), libc::EACCES);
    let sid = |attribute| Request::Sid { attribute, context: "sid70".into() };
    assert_eq!(client.request(&sid(Attribute::Exec), &[]).unwrap(), ["70"]);
    assert_eq!(errno(client.request(&sid(Attribute::Current), &[])), libc::EACCES);
    assert_eq!(errno(client.request(&sid(Attribute::Previous), &[])), libc::EINVAL);
    let mut other = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    let process = tollgate_client::pidfd::open(other.id() as i32).unwrap();
    assert_eq!(client.context(Attribute::Current, None).unwrap().as_deref(), Some("sid40"));
    assert_eq!(errno(client.context(Attribute::Current, Some(process.as_fd()))), libc::EACCES);
    other.kill().unwrap();
    other.wait().unwrap();
    client.set_mode(Mode::Enforcing, None).unwrap();
    assert_eq!(errno(client.stop()), libc::EACCES);
    assert_eq!(errno(client.reload(object.as_fd(), false, None)), libc::EACCES);
    assert_eq!(errno(client.count(true)), libc::EACCES);
    assert_eq!(errno(client.network()), libc::EACCES);
    assert_eq!(running.done().len(), 3, "{:?}", running.done());
}

#[test]
fn does_nothing_for_a_process_whose_threads_differ() {
    let running = Running::new();
    running.machine.0.lock().unwrap().mixed = true;
    let mut client = running.client();
    assert_eq!(client.context(Attribute::Current, None).unwrap().as_deref(), Some("sid28"));
    let object = file("");
    assert_eq!(errno(client.stop()), libc::EPERM);
    assert_eq!(errno(client.set_label(object.as_fd(), "sid70")), libc::EPERM);
    assert_eq!(
        errno(client.request(&Request::Sid { attribute: Attribute::Exec, context: "sid70".into() }, &[])),
        libc::EPERM
    );
    assert!(running.done().is_empty());
}

#[test]
fn refuses_a_caller_whose_context_has_changed_since_it_connected() {
    let running = Running::confined(&[]);
    let mut client = running.client();
    client.mode().unwrap();
    running.machine.0.lock().unwrap().confined = false;
    assert_eq!(errno(client.stop()), libc::EAGAIN);
    assert!(running.done().is_empty());
    running.client().set_mode(Mode::Permissive, None).unwrap();
}

#[test]
fn counts_as_long_as_somebody_wants_it() {
    let running = Running::new();
    let counting = || running.machine.0.lock().unwrap().counting;
    let (mut one, mut two) = (running.client(), running.client());
    one.count(true).unwrap();
    two.count(true).unwrap();
    one.count(false).unwrap();
    one.mode().unwrap();
    assert!(counting(), "another wants it");
    drop(two);
    while counting() {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn ends_when_it_is_stopped_and_when_a_signal_says_so() {
    let mut running = Running::new();
    running.client().stop().unwrap();
    assert_eq!(running.end(), End::Stopped);
    assert_eq!(running.done(), ["stop"]);
    let socket = running.folder.path().join("socket");
    let error = Client::connect_to(&socket).unwrap_err().to_string();
    assert!(error.contains("start it with `tollgate enforce POLICY`"), "{error}");

    let mut running = Running::new();
    running.signal(Wish::Reread);
    while running.done().is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
    running.signal(Wish::End);
    assert_eq!(running.end(), End::Signal);
    assert_eq!(running.done(), ["reread", "end"]);
}

#[test]
fn refuses_a_second_daemon_and_names_the_first() {
    let running = Running::new();
    let error = Daemon::listen(running.folder.path()).unwrap_err().to_string();
    assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
    running.client().mode().unwrap();
}

#[test]
fn listens_where_a_killed_daemon_has_listened() {
    let folder = tempfile::tempdir().unwrap();
    drop(UnixListener::bind(folder.path().join("socket")).unwrap());
    fs::write(folder.path().join("lock"), "1234567\n").unwrap();
    drop(Daemon::listen(folder.path()).unwrap());
}

#[test]
fn refuses_callers_that_do_not_say_hello_with_its_nonce() {
    let running = Running::new();
    for first in ["mode\n", "hello 00112233445566778899aabbccddeeff\n"] {
        let mut socket = running.raw();
        assert!(line(&socket).starts_with("tollgate 1 "));
        socket.write_all(first.as_bytes()).unwrap();
        assert!(line(&socket).starts_with("error 71 "), "{first}");
        assert_eq!(line(&socket), "", "{first}");
    }
}

#[test]
fn refuses_a_process_that_speaks_over_another_ones_connection() {
    let running = Running::new();
    let socket = running.raw();
    greeted(&socket);
    let mut other = std::process::Command::new("sh");
    other.args(["-c", "echo mode >&0"]).stdin(OwnedFd::from(socket.try_clone().unwrap()));
    assert!(other.status().unwrap().success());
    assert_eq!(line(&socket), "");
}

#[test]
fn refuses_requests_that_are_too_long_or_unknown_and_goes_on() {
    let running = Running::new();
    let mut socket = running.raw();
    greeted(&socket);
    socket.write_all(b"dance\n").unwrap();
    assert!(line(&socket).contains("there%20is%20no%20request"));
    let mut socket = running.raw();
    greeted(&socket);
    // The daemon closes before it has read all of it.
    let _ = socket.write_all(&[b'a'; 100_000]);
    assert!(line(&socket).starts_with("error 90 "));
    let mut client = running.client();
    let object = file("");
    assert_eq!(errno(client.request(&Request::Mode, &[object.as_fd()])), libc::EINVAL);
    assert_eq!(errno(client.request(&Request::Label, &[])), libc::EINVAL);
    client.mode().unwrap();
}

#[test]
fn answers_requests_that_come_together_and_those_that_come_in_parts() {
    let running = Running::new();
    let mut socket = running.raw();
    greeted(&socket);
    socket.write_all(b"mode\nmode\nmo").unwrap();
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ok permissive");
    assert_eq!(lines.next().unwrap().unwrap(), "ok permissive");
    socket.write_all(b"de\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "ok permissive");
}

#[test]
fn gives_unconfined_callers_the_places_of_confined_ones() {
    let running = Running::confined(&[]);
    // Of one domain only some have a place, root's too.
    let mut confined: Vec<Client> = (0..MAX_OF_HOLDER).map(|_| running.client()).collect();
    let path = running.folder.path().join("socket");
    assert_eq!(errno(Client::connect_to(&path)), libc::EAGAIN);
    running.machine.0.lock().unwrap().confined = false;
    let unconfined: Vec<Client> = (0..MAX_CONNECTIONS - MAX_OF_HOLDER).map(|_| running.client()).collect();
    // All places are taken. The one that has said nothing for longest goes.
    running.client().mode().unwrap();
    assert_eq!(errno(confined[0].mode()), libc::EAGAIN, "it is told why");
    assert!(matches!(confined[1].mode(), Err(ClientError::Refused(_))), "it is no longer who it was");
    drop(unconfined);
}

#[test]
fn turns_callers_away_when_there_are_too_many_and_takes_others_when_they_go() {
    let running = Running::new();
    let mut clients: Vec<Client> = (0..MAX_CONNECTIONS).map(|_| running.client()).collect();
    let refused = Client::connect_to(&running.folder.path().join("socket"));
    assert_eq!(errno(refused), libc::EAGAIN);
    clients.truncate(MAX_CONNECTIONS - 1);
    let mut client = loop {
        match Client::connect_to(&running.folder.path().join("socket")) {
            Ok(client) => break client,
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    };
    client.mode().unwrap();
    clients[0].mode().unwrap();
}

#[test]
fn refuses_a_context_to_a_container_whose_process_is_confined_already() {
    let running = Running::confined(&[]);
    let process = tollgate_client::pidfd::open(std::process::id() as i32).unwrap();
    let refused = running.client().contain(process.as_fd(), None, "sid5", "sid6");
    assert_eq!((errno(refused), running.done()), (libc::EINVAL, Vec::new()));
}

#[test]
fn gives_a_container_the_context_that_was_named_for_it() {
    let running = Running::new();
    let process = tollgate_client::pidfd::open(std::process::id() as i32).unwrap();
    let root = File::open("/").unwrap();
    let given = running.client().contain(process.as_fd(), Some(root.as_fd()), "sid5", "sid6").unwrap();
    assert_eq!(given, ("sid5".to_owned(), "sid6".to_owned()));
    assert_eq!(running.done(), ["name sid5 sid6 true", "contain 5 6 true"]);
}
