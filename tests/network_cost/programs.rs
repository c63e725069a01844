//! The programs of network devices, loaded without enforcement: with a policy in force, and networks that are labelled.

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    sync::atomic::{AtomicU64, Ordering},
};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, TC_EGRESS, TC_INGRESS, TcHookBuilder};
use tollgate_abi::{
    bytes_of,
    enforcer::{tg_identifier_key, tg_sid_key, tg_socket},
};
use tollgate_client::network::FATES;
use tollgate_enforcer::{
    contexts::{self, Contexts, Sid},
    datapath::{
        Networks, Source,
        table::{self, Numbers},
    },
    generation::Generation,
    programs::{self, Pins},
    state::State,
};
use tollgate_policy::{built::Built, model::Level};

use super::link::Link;
use crate::program::{
    Scratch,
    machine::{policy, source},
    word,
};

/// The programs of devices with Ethernet headers.
const PROGRAMS: [&str; 2] = ["egress_ether", "ingress_ether"];
/// Whose packets they are.
const TALKER: &str = "system_u:system_r:talker:s3:c0,c1";
/// Labels are beside packets, by CIPSO or sealed.
const NETWORKS: &str = "[[doi]]\nnumber = 1\ntag = \"bitmap\"\n[[doi]]\nnumber = 16\ntag = \"sealed\"\n\
    [[zone]]\naddresses = [\"198.18.1.0/24\"]\n\
    [[zone]]\naddresses = [\"198.18.2.0/24\"]\ndoi = 1\nunlabelled = \"refuse\"\n\
    [[zone]]\naddresses = [\"198.18.3.0/24\"]\ndoi = 16\nunlabelled = \"refuse\"\n\
    [sealed]\nnode = 7\nkeys = \"KEYS\"\n";

pub(super) struct Datapath {
    object: Object,
    /// Its maps are in use by the programs.
    _generation: Generation,
    sockets: MapHandle,
    sid: Sid,
    labelled: AtomicU64,
}

/// The zones of this test name neither contexts nor levels.
struct Unnumbered;

impl Numbers for Unnumbered {
    fn sid(&mut self, context: &str) -> Result<Sid, String> {
        Err(format!("{context}: unexpected"))
    }

    fn level(&mut self, _: &Level) -> Result<u32, String> {
        Err("a level: unexpected".to_owned())
    }
}

impl Datapath {
    pub(super) fn load(scratch: &Scratch) -> Self {
        let object = load_programs();
        let map = |name: &str| {
            let found = object
                .maps()
                .find(|map| map.name().to_string_lossy().ends_with(name))
                .unwrap_or_else(|| panic!("no map {name}"));
            MapHandle::try_from(&found).unwrap()
        };
        let built = policy(scratch, "network", &[source("crates/study/src/network.cil")]);
        let mut generation =
            Generation::prepare(1, Built::open(&built).unwrap(), &[], &map("generation_template")).unwrap();
        let initial = Contexts::initial(&generation.policy, TALKER);
        generation.adopt(&initial);
        let sid = contexts::next(initial.iter().map(|(sid, _)| sid).max().unwrap());
        let context = generation.context(TALKER).unwrap();
        generation.set(sid, context);
        let key = tg_sid_key { context, generation: generation.number };
        map("sids").update(bytes_of(&key), &sid.to_ne_bytes(), MapFlags::ANY).unwrap();
        // In sealed labels; the kernel's own answers have the context of an initial SID.
        for sid in initial.iter().map(|(sid, _)| sid).chain([sid]) {
            generation.set_identifier(sid, sid);
            let key = tg_identifier_key { generation: generation.number, identifier: sid };
            map("identified").update(bytes_of(&key), &sid.to_ne_bytes(), MapFlags::ANY).unwrap();
        }
        let mut table = table::of(&networks(scratch), &generation.policy, &mut Unnumbered).unwrap();
        table.seal.generation = generation.policy_number();
        generation.put_datapath(&table);
        generation.put_in_force(&map("generations"), None, |place| place.put()).unwrap();
        let state = State::new(map(".bss")).unwrap();
        state.initialise(0, sid);
        state.set_enforcing(true);
        let sockets = map("sockets");
        Self { object, _generation: generation, sockets, sid, labelled: AtomicU64::new(0) }
    }

    /// Attaches the programs to both ends of a link.
    pub(super) fn attach(&self, link: &Link) {
        for (name, point) in PROGRAMS.into_iter().zip([TC_EGRESS, TC_INGRESS]) {
            let program = self.object.progs().find(|program| program.name() == name).unwrap();
            let descriptor = program.as_fd();
            link.for_each_device(|device| {
                let mut builder = TcHookBuilder::new(descriptor);
                let mut hook = builder.ifindex(device).replace(true).handle(1).priority(1).hook(point);
                // The place of both.
                if point == TC_EGRESS {
                    hook.create().unwrap();
                }
                hook.attach().unwrap();
            });
        }
    }

    /// Gives a socket the label that enforcement would.
    pub(super) fn label(&self, socket: BorrowedFd<'_>) {
        let label = tg_socket { sid: self.sid, ..tg_socket::default() };
        let key = socket.as_raw_fd().to_ne_bytes();
        self.sockets.update(&key, bytes_of(&label), MapFlags::ANY).unwrap();
        self.labelled.fetch_add(1, Ordering::Relaxed);
    }

    /// Packets with labels were sent and accepted, and none was dropped.
    pub(super) fn assert_all_labelled(&self) {
        let packets = self.object.maps().find(|map| map.name() == "packets").unwrap();
        let count = |number: u32| -> u64 {
            let values = packets.lookup_percpu(&number.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap_or_default();
            values.iter().map(|value| u64::from_ne_bytes(value[..8].try_into().unwrap())).sum()
        };
        let counts: Vec<(&str, u64)> = FATES.iter().map(|fate| (fate.name, count(fate.number))).collect();
        println!("{} sockets with labels; packets: {counts:?}", self.labelled.load(Ordering::Relaxed));
        let of = |name: &str| counts.iter().find(|(own, _)| *own == name).map_or(0, |(_, count)| *count);
        assert!(of("labelled") > 0 && of("labelled") == of("accepted"), "{counts:?}");
        assert!(counts.iter().all(|(name, count)| !name.starts_with("dropped") || *count == 0), "{counts:?}");
    }
}

fn load_programs() -> Object {
    let mut object = programs::open_datapath(&Pins::default()).unwrap();
    for mut program in object.progs_mut() {
        let wanted = PROGRAMS.iter().any(|name| program.name() == *name);
        program.set_autoload(wanted);
    }
    for mut map in object.maps_mut() {
        // No program here uses them, and without BPF LSM the kernel has none.
        if [MapType::InodeStorage, MapType::TaskStorage].contains(&map.map_type()) {
            map.set_autocreate(false).unwrap();
        }
    }
    object.load().expect("load the programs of network devices")
}

fn networks(scratch: &Scratch) -> Networks {
    use std::os::unix::fs::PermissionsExt;

    let keys = scratch.file("keys", "1 00112233445566778899aabbccddeeff\n");
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = scratch.file("network.toml", &NETWORKS.replace("KEYS", word(&keys)));
    Networks::read(&Source::named(file)).unwrap()
}
