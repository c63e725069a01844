//! Members of an etcd on this machine, for tests. Debian's package comes from the private apt; nothing is installed.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::{Duration, Instant},
};

use etcd_client::{Certificate, Client, ConnectOptions, Identity, Permission, TlsOptions, UserAddOptions};
use tollgate_host::{Cache, Packages};

/// The users of etcd, and what their certificates are called.
pub(crate) const USERS: [&str; 3] = ["root", "tollgate-publisher", "tollgate-node"];

/// Members, which end with it.
pub(crate) struct Servers {
    folder: tempfile::TempDir,
    members: Vec<Member>,
    is_secret: bool,
}

struct Member {
    port: u16,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Servers {
    /// So many members, which ask nobody for a certificate.
    pub(crate) fn start(count: usize) -> Self {
        Self::of(count, false)
    }

    /// One member that asks for certificates, with the two roles of docs/fleet.md.
    pub(crate) async fn secret() -> Self {
        let servers = Self::of(1, true);
        servers.make_roles().await;
        servers
    }

    fn of(count: usize, is_secret: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if is_secret {
            certificates(folder.path());
        }
        let ports: Vec<(u16, u16)> = (0..count).map(|_| (free_port(), free_port())).collect();
        let peers = ports.iter().enumerate().map(|(at, (_, peer))| format!("m{at}=http://127.0.0.1:{peer}"));
        let cluster = peers.collect::<Vec<_>>().join(",");
        let path = folder.path().to_str().unwrap();
        let member = |(at, (port, peer)): (usize, &(u16, u16))| {
            let scheme = if is_secret { "https" } else { "http" };
            let mut words = format!(
                "--name m{at} --data-dir {path}/m{at} --listen-client-urls {scheme}://127.0.0.1:{port} \
                 --advertise-client-urls {scheme}://127.0.0.1:{port} --listen-peer-urls http://127.0.0.1:{peer} \
                 --initial-advertise-peer-urls http://127.0.0.1:{peer} --initial-cluster {cluster} --log-level error"
            );
            if is_secret {
                words += &format!(
                    " --client-cert-auth --trusted-ca-file {path}/authority.crt --cert-file {path}/server.crt \
                     --key-file {path}/server.key"
                );
            }
            Member { port: *port, arguments: words.split_ascii_whitespace().map(str::to_owned).collect(), child: None }
        };
        let members = ports.iter().enumerate().map(member).collect();
        let mut servers = Self { folder, members, is_secret };
        (0..count).for_each(|at| servers.begin(at));
        servers
    }

    /// Starts a member, again if it has ended.
    pub(crate) fn begin(&mut self, at: usize) {
        let member = &mut self.members[at];
        let log = fs::File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let started = Command::new(program()).args(&member.arguments).stdout(Stdio::null()).stderr(log).spawn();
        member.child = Some(started.unwrap());
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", member.port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills a member.
    pub(crate) fn kill(&mut self, at: usize) {
        if let Some(mut child) = self.members[at].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends a signal such as `STOP` to a member.
    pub(crate) fn signal(&self, at: usize, signal: &str) {
        let id = self.members[at].child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    /// The options of commands for this store, as one of the users.
    pub(crate) fn options(&self, user: &str) -> String {
        let members: Vec<String> = self.members.iter().map(|member| format!("127.0.0.1:{}", member.port)).collect();
        let store = format!("--store etcd://{}", members.join(","));
        if !self.is_secret {
            return store;
        }
        let path = self.folder.path().display();
        format!(
            "{store} --etcd-authority {path}/authority.crt --etcd-certificate {path}/{user}.crt --etcd-key {path}/{user}.key"
        )
    }

    /// What the members have said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// A client of one member, which may do everything.
    pub(crate) async fn client(&self, at: usize) -> Client {
        let scheme = if self.is_secret { "https" } else { "http" };
        let mut options = ConnectOptions::new();
        if self.is_secret {
            let read = |name: &str| fs::read(self.folder.path().join(name)).unwrap();
            let tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read("authority.crt")));
            options = options.with_tls(tls.identity(Identity::from_pem(read("root.crt"), read("root.key"))));
        }
        Client::connect([format!("{scheme}://127.0.0.1:{}", self.members[at].port)], Some(options)).await.unwrap()
    }

    /// The users and roles, as docs/fleet.md makes them.
    async fn make_roles(&self) {
        let mut client = self.client(0).await;
        client.role_add("root").await.unwrap();
        for (user, role) in USERS.into_iter().zip(USERS) {
            if role != "root" {
                client.role_add(role).await.unwrap();
            }
            client.user_add(user, "", Some(UserAddOptions::new().with_no_pwd())).await.unwrap();
            client.user_grant_role(user, role).await.unwrap();
        }
        for (role, permission) in [
            ("tollgate-publisher", Permission::read_write("tollgate/policy/")),
            ("tollgate-publisher", Permission::read("tollgate/nodes/")),
            ("tollgate-node", Permission::read("tollgate/policy/")),
            ("tollgate-node", Permission::read_write("tollgate/nodes/")),
        ] {
            client.role_grant_permission(role, permission.with_prefix()).await.unwrap();
        }
        client.auth_enable().await.unwrap();
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        (0..self.members.len()).for_each(|at| self.kill(at));
    }
}

/// A port that nobody listens on, each time another one, below those that the kernel gives to clients.
fn free_port() -> u16 {
    static LAST: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    (0..1000)
        .map(|_| first + LAST.fetch_add(1, Ordering::SeqCst))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

/// Debian's etcd.
fn program() -> PathBuf {
    let cache = Cache::of_user().unwrap();
    let unpack = |fresh: &Path| Packages::new(&cache).unpack(&["etcd-server/bookworm"], fresh).map(drop);
    cache.folder::<tollgate_host::Error>("etcd-bookworm", unpack).unwrap().join("usr/bin/etcd")
}

/// An authority, and the certificates of the members and the users.
fn certificates(folder: &Path) {
    let configuration = "[req]\ndistinguished_name=name\n[name]\n[authority]\nbasicConstraints=critical,CA:TRUE\n\
                         [leaf]\nbasicConstraints=CA:FALSE\nsubjectAltName=IP:127.0.0.1\n\
                         extendedKeyUsage=serverAuth,clientAuth\n";
    fs::write(folder.join("openssl.cnf"), configuration).unwrap();
    let make = |name: &str, kind: &str| {
        let mut words = format!(
            "req -x509 -config openssl.cnf -extensions {kind} -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
             -days 2 -subj /CN={name} -keyout {name}.key -out {name}.crt"
        );
        if kind == "leaf" {
            words += " -CA authority.crt -CAkey authority.key";
        }
        let made = Command::new("openssl").args(words.split_ascii_whitespace()).current_dir(folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    make("authority", "authority");
    ["server"].into_iter().chain(USERS).for_each(|name| make(name, "leaf"));
}
