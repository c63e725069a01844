//! Network devices: they have programs while networks are labelled, whatever others do to them, and their routes leave room
//! for labels.
//!
//! The part in the guest is this program again. QEMU and kernels are needed: without them these tests fail, and say so.

use std::{
    env, fs,
    path::PathBuf,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use libbpf_rs::{Link, libbpf_sys};
use tollgate_enforcer::datapath::{
    links,
    netlink::{CREATE, EXCLUSIVE, Request, Socket},
};

use crate::program::{
    Scratch,
    inside::{INSIDE, is_guest, name, sh},
    machine::{Machine, policy, source},
    pair::tools,
    steps::TIMEOUT,
};

/// Labels with 1,024 categories: 40 bytes in IPv4, 144 in IPv6.
const NETWORKS: &str = "[[doi]]\nnumber = 1\ntag = \"bitmap\"\n\
                        [[zone]]\naddresses = [\"10.0.0.0/8\", \"fd00::/8\"]\ndoi = 1\n";
/// Where enforcement pins the links of devices.
const LINKS: &str = "/sys/fs/bpf/tollgate/datapath/links";
/// How long the daemon may take, in a guest on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);
/// Waits until the daemon is gone: its process stays as a zombie, because nothing reaps it in a guest.
const GONE: &str = "while tollgate mode; do sleep 0.2; done >/dev/null 2>&1";

/// The ends of a clsact (TC_H_MIN_EGRESS, TC_H_MIN_INGRESS), and the kinds of links, likewise.
const PARENTS: [u32; 2] = [0xffff_fff3, 0xffff_fff2];
const KINDS: [libbpf_sys::bpf_attach_type; 2] = [libbpf_sys::BPF_TCX_EGRESS, libbpf_sys::BPF_TCX_INGRESS];

/// Runs a test's part in a guest of this kernel, with these modules.
fn in_guest(kernel: &str, modules: &[&str], test: impl Fn()) {
    let scratch = Scratch::new();
    let built = policy(&scratch, "policy", &[source("tests/enforcer/policy.cil")]);
    let (program, this) = (scratch.program(), env::current_exe().unwrap());
    let networks = scratch.file("network.toml", NETWORKS);
    // Busybox's ip shows no MTU.
    let libraries = "/tools/lib/x86_64-linux-gnu";
    let ip = format!(
        "mkdir -p /opt /tools && tar -xf /tools.tar -C /tools\nprintf '#!/bin/sh\\nexec {libraries}/ld-linux-x86-64.so.2 \
         --library-path {libraries}:/tools/usr/lib/x86_64-linux-gnu /tools/bin/ip \"$@\"\\n' > /opt/ip\nchmod +x /opt/ip\n"
    );
    let script = format!(
        "{ip}grep -q ' /sys/fs/bpf ' /proc/mounts || mount -t bpf none /sys/fs/bpf\nexport {INSIDE}=1\n\
         exec /tests --exact {} --include-ignored --nocapture --test-threads 1\n",
        name(test)
    );
    let script = scratch.file("script", &script);
    let tools = tools(&scratch);
    let files: [(&PathBuf, &str); 6] = [
        (&tools, "/tools.tar"),
        (&built, "/policy"),
        (&program, "/bin/tollgate"),
        (&this, "/tests"),
        (&networks, "/etc/tollgate/network.toml"),
        (&script, "/script"),
    ];
    let machine = Machine::new(&scratch, kernel, "bpf", TIMEOUT).modules(modules);
    let machine = files.iter().fold(machine, |machine, (host, guest)| machine.file(host, guest));
    let ended = machine.run(&["sh", "/script"]).with(0);
    println!("{}", ended.stdout);
    assert!(ended.stdout.contains("1 passed"), "{}", ended.stdout);
}

/// Struct tcmsg.
fn traffic(device: u32, handle: u32, parent: u32) -> Vec<u8> {
    [0, device, handle, parent, 0].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// How many filters a device has for packets that it sends, and that it receives.
fn filters(socket: &Socket, device: u32) -> [usize; 2] {
    PARENTS.map(|parent| {
        let found = socket.list(libc::RTM_GETTFILTER, &traffic(device, 0, parent), |request| request);
        // The first of a priority only begins it.
        found.map_or(0, |found| found.len() / 2)
    })
}

/// Likewise links.
fn linked(device: u32) -> [usize; 2] {
    KINDS.map(|kind| {
        let size = size_of::<libbpf_sys::bpf_prog_query_opts>() as _;
        let mut options = libbpf_sys::bpf_prog_query_opts { sz: size, ..Default::default() };
        // SAFETY: the options live as long as the call, and name no buffer.
        let answer = unsafe { libbpf_sys::bpf_prog_query_opts(device as i32, kind, &raw mut options) };
        // SAFETY: the kernel has written the number of programs there.
        if answer == 0 { unsafe { options.__bindgen_anon_1.count as usize } } else { 0 }
    })
}

/// How many programs a device runs on packets that it sends, and that it receives.
fn programs(socket: &Socket, device: &str) -> [usize; 2] {
    let devices = links::devices(socket).unwrap();
    let Some(device) = devices.iter().find(|own| own.name == device) else { return [0; 2] };
    let (filters, linked) = (filters(socket, device.index), linked(device.index));
    [filters[0] + linked[0], filters[1] + linked[1]]
}

/// Waits until something holds.
#[track_caller]
fn comes(what: &str, holds: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < DEADLINE, "{what} does not come");
        sleep(Duration::from_millis(10));
    }
    println!("{what}: after {} ms", began.elapsed().as_millis());
    began.elapsed()
}

fn make_veth(socket: &Socket, device: &str) {
    let request = Request::new(libc::RTM_NEWLINK, CREATE | EXCLUSIVE, &[0; 16]).string(3, device);
    socket.ask(request.nested(18, |info| info.string(1, "veth"))).unwrap();
}

fn index(socket: &Socket, device: &str) -> u32 {
    links::devices(socket).unwrap().iter().find(|own| own.name == device).unwrap().index
}

/// Whether a device has a clsact.
fn has_clsact(socket: &Socket, device: &str) -> bool {
    let request =
        Request::new(libc::RTM_NEWQDISC, CREATE | EXCLUSIVE, &traffic(index(socket, device), 0xffff_0000, 0xffff_fff1));
    let made = socket.ask(request.string(1, "clsact"));
    if made.is_ok() {
        let request = Request::new(libc::RTM_DELQDISC, 0, &traffic(index(socket, device), 0xffff_0000, 0xffff_fff1));
        socket.ask(request).unwrap();
    }
    made.is_err()
}

fn output(line: &str) -> String {
    let ran = Command::new("sh").args(["-c", line]).output().unwrap();
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Removes a device's programs, as somebody else would.
fn remove_programs(socket: &Socket, device: &str) {
    let index = index(socket, device);
    let pins: Vec<_> = fs::read_dir(LINKS).unwrap().map(|pin| pin.unwrap().path()).collect();
    for pin in pins.iter().filter(|pin| pin.to_str().unwrap().contains(&format!("-{index}-"))) {
        Link::open(pin).unwrap().detach().unwrap();
    }
    if pins.is_empty() {
        let request = Request::new(libc::RTM_DELQDISC, 0, &traffic(index, 0xffff_0000, 0xffff_fff1));
        socket.ask(request).unwrap();
    }
}

/// What must hold on every kernel.
fn holds_on_devices() {
    let socket = Socket::open().unwrap();
    let routes = "/opt/ip route; /opt/ip -6 route; /opt/ip addr";
    make_veth(&socket, "before");
    make_veth(&socket, "others");
    let clsact = Request::new(
        libc::RTM_NEWQDISC,
        CREATE | EXCLUSIVE,
        &traffic(index(&socket, "others"), 0xffff_0000, 0xffff_fff1),
    );
    let others_made = socket.ask(clsact.string(1, "clsact")).is_ok();
    sh("/opt/ip link set lo up; /opt/ip addr add 10.77.0.1/24 dev before; /opt/ip link set before up; /opt/ip link set veth0 up; sleep 3
        /opt/ip route add default via 10.77.0.2");
    let routes_before = output(routes);
    sh("tollgate enforce /policy > /enforced 2>&1");
    assert_eq!(
        [programs(&socket, "lo"), programs(&socket, "before"), programs(&socket, "others")],
        [[1, 0], [1, 1], [1, 1]]
    );
    let now = output("/opt/ip route");
    assert!(now.contains("10.77.0.0/24 dev before") && now.contains("mtu 1460"), "{now}");
    assert!(output("/opt/ip route get 10.99.0.1").contains("mtu 1460"), "{now}");
    assert!(!output("/opt/ip route get 192.168.0.1").contains("mtu"), "{now}");

    make_veth(&socket, "after");
    comes("a program on a new device", || programs(&socket, "after") == [1, 1]);
    sh("/opt/ip addr add 10.78.0.1/24 dev after; /opt/ip link set after up");
    comes("an MTU on a new route", || {
        output("/opt/ip route").lines().any(|line| line.contains("10.78.0.0/24") && line.contains("1460"))
    });
    // Somebody has the same routes again, as they were at first.
    sh(
        "/opt/ip addr del 10.77.0.1/24 dev before; /opt/ip addr add 10.77.0.1/24 dev before; /opt/ip route add default via 10.77.0.2",
    );
    let has_room = |to: &str| output(&format!("/opt/ip route get {to}")).contains("mtu 1460");
    comes("an MTU on renewed routes", || has_room("10.77.0.9") && has_room("10.99.0.1"));
    remove_programs(&socket, "before");
    // It may be back at once.
    let put_back = "before: somebody has removed the egress program";
    comes("a program that was removed", || output("cat /var/log/tollgate/daemon.log").contains(put_back));
    comes("both programs", || programs(&socket, "before") == [1, 1]);

    sh(&format!("kill -9 $(cat /run/tollgate/lock); {GONE}; true"));
    assert_eq!(programs(&socket, "before"), [1, 1]);
    make_veth(&socket, "meanwhile");
    sh("tollgate enforce /policy > /enforced 2>&1");
    comes("a program on a device of the meantime", || programs(&socket, "meanwhile") == [1, 1]);
    assert_eq!(
        [programs(&socket, "lo"), programs(&socket, "before"), programs(&socket, "after")],
        [[1, 0], [1, 1], [1, 1]]
    );

    sh("for device in after meanwhile; do /opt/ip link del $device; done; sleep 1");
    sh("mv /etc/tollgate/network.toml /; tollgate reload /policy");
    assert_eq!(programs(&socket, "before"), [0, 0]);
    assert_eq!(output(routes), routes_before, "a reload without networks does not restore routes");
    sh("mv /network.toml /etc/tollgate; tollgate reload /policy");
    assert_eq!(programs(&socket, "before"), [1, 1]);

    sh("tollgate stop");
    for device in ["lo", "before", "others"] {
        assert_eq!(programs(&socket, device), [0, 0], "{device}");
    }
    assert_eq!(output(routes), routes_before, "the end does not restore routes");
    assert!(!has_clsact(&socket, "before") && has_clsact(&socket, "others") == others_made);
    assert_eq!(output("ls /run/tollgate | grep routes; ls /sys/fs/bpf"), "");
}

#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_filters_on_all_devices_and_room_on_their_routes() {
    if is_guest() {
        return holds_on_devices();
    }
    in_guest("6.1", &["veth", "sch_ingress", "cls_bpf"], keeps_filters_on_all_devices_and_room_on_their_routes);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_links_on_all_devices_and_room_on_their_routes() {
    if is_guest() {
        return holds_on_devices();
    }
    in_guest("6.18", &["veth", "sch_ingress"], keeps_links_on_all_devices_and_room_on_their_routes);
}
