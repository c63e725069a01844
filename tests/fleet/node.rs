//! A node of a fleet in a guest that enforces, which this machine gives orders over the network.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;

use super::members::STORE;
use crate::program::{
    Running, Scratch,
    guests::{Taken, take},
    steps::Guest,
    switch::Switch,
};

/// How long an order may take.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How a guest gets its orders, a line each: over the network, from the port that has its number.
const ORDERS: &str = "\
grep -q ' /sys/fs/bpf ' /proc/mounts || mount -t bpf none /sys/fs/bpf
mkdir -p /run /watch; mount -t tmpfs none /run; mkfifo /said
ifconfig eth0 10.77.9.$own netmask 255.255.255.0 up
until ping -c 1 -W 1 10.77.9.100; do sleep 1; done >/dev/null 2>&1
nc 10.77.9.100 $((7000 + own)) </said | while read -r line; do eval \"$line\"; echo \"@= $?\"; done >/said 2>&1
";
/// Enforcement, and a service that reads a secret. It may never write it.
const ENFORCE: &str = "\
tollgate enforce /policy </dev/null >/enforced 2>&1 && echo secret >/secret && tollgate label set $(of three) /secret";
/// What the service does until the guest ends. It says what is not as it should be, and how often it has asked.
const SERVICE: &str = "\
n=0
while :; do
    { true </secret; } 2>/dev/null || echo unread >>/watch/wrong
    [ $((n % 20)) = 0 ] && { { true >/secret; } 2>/dev/null && echo written >>/watch/wrong; }
    n=$((n + 1)); echo $n >/watch/rounds; sleep 0.3
done
";

pub(super) struct Node {
    pub(super) name: String,
    orders: TcpStream,
    answers: BufReader<TcpStream>,
    _running: Running,
}

/// Boots guests at a switch, with a policy and the fleet's root file of the scratch folder. They keep their places until
/// the second value is dropped.
pub(super) fn boot(scratch: &Scratch, switch: &Switch, policy: &Path, numbers: [u8; 3]) -> (Vec<Node>, Taken) {
    let guests = numbers.map(|number| guest(scratch, switch, policy, number).prepare());
    let listeners = numbers.map(|number| {
        let port = 7000 + u16::from(number);
        switch.hub.within(|| TcpListener::bind(("10.77.9.100", port)).unwrap())
    });
    let places = take(3);
    let running = guests.map(|(scratch, command)| scratch.start(command));
    let nodes = numbers.into_iter().zip(listeners).zip(running);
    (nodes.map(|((number, listener), running)| Node::connected(number, &listener, running)).collect(), places)
}

fn guest<'s>(scratch: &'s Scratch, switch: &Switch, policy: &Path, number: u8) -> Guest<'s> {
    let [own, other] = switch.wire(scratch, number);
    let fleet = scratch.program().with_file_name("tollgate-fleet");
    Guest::under(scratch, "6.1", policy)
        .named(&format!("script{number}"))
        .wire(&own, &other)
        .with(&fleet, "/bin/tollgate-fleet")
        .with(&scratch.path("fleet.root"), "/etc/tollgate/fleet/root")
        .with(&scratch.file("service", SERVICE), "/service")
        .timeout(3000)
        .lines(&format!("own={number}\n{ORDERS}"))
}

impl Node {
    /// Waits until a guest takes orders.
    fn connected(number: u8, listener: &TcpListener, mut running: Running) -> Self {
        let mut come = None;
        listener.set_nonblocking(true).unwrap();
        running.wait_until("a guest's connection", |_| {
            come = listener.accept().ok();
            come.is_some()
        });
        let (orders, _) = come.unwrap();
        orders.set_nonblocking(false).unwrap();
        orders.set_read_timeout(Some(TIMEOUT)).unwrap();
        let answers = BufReader::new(orders.try_clone().unwrap());
        Self { name: format!("web{number}"), orders, answers, _running: running }
    }

    /// Does what a line of the shell says. Returns its exit status and its output.
    pub(super) fn order(&mut self, line: &str) -> (i32, String) {
        assert!(!line.contains('\n'), "{line}");
        writeln!(self.orders, "{line}").unwrap();
        let mut output = String::new();
        loop {
            let mut line = String::new();
            assert!(self.answers.read_line(&mut line).unwrap() > 0, "{} has ended: {output}", self.name);
            match line.strip_prefix("@= ") {
                Some(code) => return (code.trim_end().parse().unwrap(), output),
                None => output += &line,
            }
        }
    }

    /// The output of what must succeed.
    #[track_caller]
    pub(super) fn does(&mut self, line: &str) -> String {
        let (code, output) = self.order(line);
        assert_eq!(code, 0, "{}: {line}: {output}", self.name);
        output
    }

    /// Sets its clock, which is then so many seconds ahead of this machine's.
    pub(super) fn set_clock(&mut self, ahead: i64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        self.does(&format!("date -s @{}", now.cast_signed() + ahead));
    }

    /// Enforces, and asks to belong to the fleet. Returns the digits of its key.
    pub(super) fn enrol(&mut self, also: &str) -> String {
        let name = self.name.clone();
        let groups = if also.is_empty() { String::new() } else { format!("groups = [\\\"{also}\\\"]\\n") };
        self.does(&format!(
            "printf 'node = \"{name}\"\\ngroup = \"web\"\\n' >/etc/tollgate/fleet/node; printf \"{groups}\" >>/etc/tollgate/fleet/node"
        ));
        self.does(ENFORCE);
        let also = if also.is_empty() { String::new() } else { format!("--also {also}") };
        let root = "--root /etc/tollgate/fleet/root";
        let said =
            self.does(&format!("tollgate fleet enrol {name} --store {STORE} {root} --group web {also} --kept /node"));
        said.rsplit(": ").next().unwrap().trim().to_owned()
    }

    /// Begins to take what is published.
    pub(super) fn begin(&mut self) {
        self.does(&format!("tollgate fleet agent --store {STORE} --kept /node --spread 2s >/agent 2>&1 </dev/null &"));
    }

    /// Begins the service.
    pub(super) fn serve(&mut self) {
        self.does("as visitor sh /service >/dev/null 2>&1 </dev/null &");
    }

    /// How often the service has asked, and what was not as it should be since the last question.
    pub(super) fn served(&mut self) -> (u64, String) {
        let rounds = self.does("cat /watch/rounds").trim().parse().unwrap();
        (rounds, self.does("touch /watch/wrong; cat /watch/wrong; rm /watch/wrong"))
    }

    /// The policy in force, by its path, which names the generation; and the mode.
    pub(super) fn in_force(&mut self) -> (String, String) {
        let status: Value = serde_json::from_str(&self.does("tollgate status --json 2>/dev/null")).unwrap();
        let text = |name: &str| status[name].as_str().unwrap_or_default().to_owned();
        (text("policy"), text("mode"))
    }
}
