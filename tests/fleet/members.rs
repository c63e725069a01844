//! Three members of an etcd, each in a network namespace of its own at a switch: they can be killed, cut off, stopped and
//! compacted. Debian's packages come from the private apt; nothing is installed.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tollgate_host::{Cache, Packages};

use crate::program::{Scratch, namespace::Namespace, switch::Switch, wait_for, word};

/// The store, as commands name it.
pub(super) const STORE: &str = "etcd://10.77.9.11:2379,10.77.9.12:2379,10.77.9.13:2379";
const NUMBERS: [u8; 3] = [11, 12, 13];

pub(super) struct Members<'s> {
    switch: &'s Switch,
    folder: PathBuf,
    programs: PathBuf,
    places: [Namespace; 3],
    children: [Option<Child>; 3],
}

impl<'s> Members<'s> {
    pub(super) fn start(switch: &'s Switch, scratch: &Scratch) -> Self {
        let cache = Cache::of_user().unwrap();
        let packages = ["etcd-server/bookworm", "etcd-client/bookworm"];
        let unpack = |fresh: &Path| Packages::new(&cache).unpack(&packages, fresh).map(drop);
        let programs =
            cache.folder::<tollgate_host::Error>("etcd-and-client-bookworm", unpack).unwrap().join("usr/bin");
        let places = NUMBERS.map(|number| switch.namespace(number));
        let mut members = Self { switch, folder: scratch.path(""), programs, places, children: [None, None, None] };
        members.begin_all();
        members
    }

    /// Starts those that do not run, and waits until they have a leader.
    pub(super) fn begin_all(&mut self) {
        (0..3).for_each(|at| self.begin(at));
        wait_for("a leader", || self.leader().is_some());
    }

    fn begin(&mut self, at: usize) {
        if self.children[at].is_some() {
            return;
        }
        let cluster = NUMBERS.map(|number| format!("m{number}=http://10.77.9.{number}:2380")).join(",");
        let (number, folder) = (NUMBERS[at], word(&self.folder));
        let [clients, peers] = [2379, 2380].map(|port| format!("http://10.77.9.{number}:{port}"));
        let words = format!(
            "--name m{number} --data-dir {folder}/m{number} --listen-client-urls {clients} --advertise-client-urls {clients} \
             --listen-peer-urls {peers} --initial-advertise-peer-urls {peers} --initial-cluster {cluster} --log-level error"
        );
        let log = File::options().create(true).append(true).open(self.folder.join("etcd.log")).unwrap();
        let mut etcd = Command::new(self.programs.join("etcd"));
        etcd.args(words.split_ascii_whitespace()).stdout(Stdio::null()).stderr(log);
        self.children[at] = Some(self.places[at].within(|| etcd.spawn().unwrap()));
    }

    pub(super) fn kill(&mut self, at: usize) {
        if let Some(mut child) = self.children[at].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(super) fn kill_all(&mut self) {
        (0..3).for_each(|at| self.kill(at));
    }

    /// Cuts a member off from the others and from all nodes, or joins it again.
    pub(super) fn set_joined(&self, at: usize, joined: bool) {
        self.switch.set(&format!("cable{}", NUMBERS[at]), joined);
    }

    /// Which member leads; `None`: none does.
    pub(super) fn leader(&self) -> Option<usize> {
        (0..3).find(|at| {
            let status = self.status(*at);
            status.is_some_and(|status| status["leader"] == status["header"]["member_id"] && status["leader"] != 0)
        })
    }

    /// Forgets all history but the present.
    pub(super) fn compact(&self) {
        let status = self.leader().and_then(|leader| self.status(leader)).expect("a leader");
        let revision = status["header"]["revision"].to_string();
        self.control(0, &["compact", "--physical", &revision]).expect("compacted");
    }

    fn status(&self, at: usize) -> Option<Value> {
        let all: Value = serde_json::from_slice(&self.control(at, &["endpoint", "status", "-w", "json"])?).ok()?;
        Some(all[0]["Status"].clone())
    }

    /// What `etcdctl` prints, if it succeeds.
    fn control(&self, at: usize, words: &[&str]) -> Option<Vec<u8>> {
        let endpoint = format!("http://10.77.9.{}:2379", NUMBERS[at]);
        let mut command = Command::new(self.programs.join("etcdctl"));
        command.args(["--endpoints", &endpoint, "--dial-timeout", "2s", "--command-timeout", "3s"]).args(words);
        let done = self.switch.hub.within(|| command.env("ETCDCTL_API", "3").output().unwrap());
        done.status.success().then_some(done.stdout)
    }
}

impl Drop for Members<'_> {
    fn drop(&mut self) {
        self.kill_all();
    }
}
