use std::{fs, mem::offset_of, path::Path, sync::OnceLock};

use tollgate_abi::tables::{
    TG_AND, TG_OBJECT_R, TG_OR, TG_SELF, tg_class, tg_entry, tg_header, tg_step, tg_tuple, tg_type,
};

use super::*;
use crate::{built::Built, model::Context, oracle::Oracle, sepol};

const PLAN: Plan = Plan { decisions: 16_000, seed: 7 };

fn compile(files: &[sepol::CilFile]) -> Built {
    let options = sepol::Options { without_lines: true, ..sepol::Options::default() };
    Built::from_compiled(sepol::compile(files, &options).unwrap()).unwrap()
}

/// Tollgate's own policy, which has one of everything.
fn own() -> &'static Built {
    static OWN: OnceLock<Built> = OnceLock::new();
    OWN.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/tollgate");
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "cil"));
        files.sort();
        let file = |path: &std::path::PathBuf| sepol::CilFile {
            name: path.display().to_string(),
            text: fs::read(path).unwrap(),
        };
        compile(&files.iter().map(file).collect::<Vec<_>>())
    })
}

fn verify(built: &Built, tables: &[u8], peer: &mut dyn Peer) -> Report {
    let server = || Ok(SecurityServer::new(&built.policy, tables, &built.levels).unwrap());
    run(&server, peer, PLAN).unwrap()
}

#[test]
fn finds_no_mismatch_in_tollgates_own_policy() {
    let report = verify(own(), &own().tables, &mut Libsepol::new(&own().image));
    assert_eq!(report.mismatches, []);
    assert_eq!(report.count(), 0);
    for (kind, tally) in &report.tallies {
        let floor = if *kind == Kind::Access { PLAN.decisions * 9 / 10 } else { PLAN.decisions / 20 };
        assert!(tally.asked > floor.min(900), "{kind:?}: {tally:?}");
        assert!(tally.granted * 10 > tally.asked, "{kind:?}: {tally:?}");
        assert_eq!(tally.ours_ns.len(), tally.peers_ns.len());
    }
    let access = report.of(Kind::Access);
    assert!(access.granted < access.asked, "something is denied");
}

/// libsepol, asked only what it is known to answer otherwise for one reason.
struct Frank<'a>(Libsepol<'a>, Difference);

impl Peer for Frank<'_> {
    fn begin(&mut self, subject: &Subject<'_>) -> Result<(), PeerError> {
        self.0.begin(subject)
    }

    fn answers(&mut self, kind: Kind, questions: &[Question]) -> Result<(Vec<Answer>, Duration), PeerError> {
        self.0.answers(kind, questions)
    }

    fn knows(&self, kind: Kind) -> bool {
        self.0.knows(kind)
    }

    fn difference(&self, policy: &Policy, kind: Kind, of: &[Context], question: &Question) -> Option<Difference> {
        if self.0.difference(policy, kind, of, question) == Some(self.1) { None } else { Some(self.1) }
    }

    fn makes_invalid_contexts(&self) -> bool {
        false
    }
}

/// Were one of them no difference any more, it would have to leave the list.
#[test]
fn sets_apart_only_what_libsepol_does_answer_otherwise() {
    let own = own();
    for (difference, kinds) in [
        (Difference::Name, &[Kind::Transition][..]),
        (Difference::Socket, &[Kind::Transition, Kind::Member, Kind::Change]),
    ] {
        let report = verify(own, &own.tables, &mut Frank(Libsepol::new(&own.image), difference));
        for (kind, tally) in &report.tallies {
            assert_eq!(tally.mismatches > 0, kinds.contains(kind), "{difference:?} {kind:?}: {report:#?}");
            assert_eq!(tally.asked > 0, kinds.contains(kind), "{difference:?} {kind:?}");
        }
    }
}

/// CIL's compiler sees to it that rules grant a bounded type no more than its parent; constraints it does not see.
const BOUNDED: &str = "
    (class file (read write)) (classorder (file)) (sid kernel) (sidorder (kernel))
    (user u) (role r) (role object_r) (type parent) (type child) (type thing)
    (userrole u r) (roletype r parent) (roletype r child) (roletype object_r thing)
    (category c0) (categoryorder (c0)) (sensitivity s0) (sensitivityorder (s0)) (sensitivitycategory s0 (c0))
    (userlevel u (s0)) (userrange u ((s0) (s0))) (sidcontext kernel (u r parent ((s0) (s0))))
    (typebounds parent child) (allow parent thing (file (read write))) (allow child thing (file (read)))
    (constrain (file (read)) (neq t1 parent))";

#[test]
fn finds_no_mismatch_where_a_constraint_denies_the_parent_alone() {
    let built = compile(&[sepol::CilFile { name: "bounded.cil".into(), text: BOUNDED.into() }]);
    let report = verify(&built, &built.tables, &mut Libsepol::new(&built.image));
    assert_eq!(report.mismatches, []);

    let mut unbounded = built.tables.clone();
    let types = built.server().unwrap().tables().header().type_at;
    let child = built.policy.types.iter().position(|type_| type_.name == "child").unwrap();
    let bounds = element::<tg_type>(types, child) + offset_of!(tg_type, bounds);
    assert_ne!(unbounded[bounds], 0);
    unbounded[bounds] = 0;
    let report = verify(&built, &unbounded, &mut Libsepol::new(&built.image));
    assert!(report.of(Kind::Access).mismatches > 0, "{report:#?}");
}

/// The offset of an element of the tables.
fn element<T>(at: u32, index: usize) -> usize {
    at as usize + index * size_of::<T>()
}

fn number<const N: usize>(tables: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(&tables[at..at + N]);
    u64::from_le_bytes(bytes)
}

fn header() -> tg_header {
    *own().server().unwrap().tables().header()
}

/// What `verify` says of tables in which one place is otherwise.
fn with_change(change: impl FnOnce(&mut [u8])) -> Report {
    let mut tables = own().tables.clone();
    change(&mut tables);
    assert_ne!(tables, own().tables);
    verify(own(), &tables, &mut Libsepol::new(&own().image))
}

#[test]
fn notices_one_flipped_bit_of_an_access_vector() {
    for place in [0, 4, 8] {
        let report = with_change(|tables| tables[element::<tg_tuple>(header().tuple_at, 2) + place] ^= 1);
        assert!(report.of(Kind::Access).mismatches > 0, "{place}: {report:#?}");
        let first = &report.mismatches[0];
        assert!(first.question.contains(":object_r:") || first.question.contains("_r:"), "{first:?}");
        assert_ne!(first.ours, first.peers);
    }
}

#[test]
fn notices_one_operator_of_a_constraint() {
    // Of a class that is asked often. Some constraints are about few types, and the questions do not come to each.
    let tables = &own().tables;
    let file = own().policy.classes.iter().position(|class| class.name == "file").unwrap();
    // Its record begins with the place of its first step.
    let first = number::<4>(tables, element::<tg_class>(header().class_at, file)) as usize;
    let steps = (first..).map(|index| element::<tg_step>(header().code_at, index));
    let mut operators = steps.filter(|at| number::<2>(tables, *at) == u64::from(TG_OR)).take(8);
    let noticed = |at: usize| {
        let change = |tables: &mut [u8]| tables[at..at + 2].copy_from_slice(&(TG_AND as u16).to_le_bytes());
        with_change(change).of(Kind::Access).mismatches > 0
    };
    assert!(operators.any(noticed));
}

#[test]
fn notices_one_entry_of_self_rules() {
    // Of a class that is asked often. Few domains have rules for themselves about others, and the questions do not come to each.
    let process = own().policy.classes.iter().position(|class| class.name == "process").unwrap() as u64;
    let is_of_self = |key: u64| key >> 48 == u64::from(TG_SELF) && key & 0xffff == process;
    let at = |index: usize| element::<tg_entry>(header().key_at, index);
    let entries =
        (0..1usize << (64 - header().key_shift)).filter(|index| is_of_self(number::<8>(&own().tables, at(*index))));
    let noticed = |entry: usize| with_change(|tables| tables[at(entry) + 8] ^= 1).of(Kind::Access).mismatches > 0;
    assert!(entries.take(8).any(noticed));
}

#[test]
fn asks_the_same_for_the_same_seed_and_else_something_else() {
    let batch = |seed| Batch::new(&own().policy, Kind::Transition, 500, &mut Random::new(seed));
    let of = |seed| (batch(seed).contexts, batch(seed).questions);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn meets_every_class_names_roles_bounds_and_every_relation_of_levels() {
    let policy = &own().policy;
    let batch = |kind| Batch::new(policy, kind, 5000, &mut Random::new(3));
    let access = batch(Kind::Access);
    let pairs = || access.questions.iter().map(|q| (&access.contexts[q.source], &access.contexts[q.target]));
    for (class, number) in policy.classes.iter().zip(0..).filter(|(class, _)| !class.name.is_empty()) {
        assert!(access.questions.iter().any(|question| question.class == number), "{}", class.name);
    }
    assert!(pairs().any(|(s, t)| s == t) && pairs().any(|(s, t)| s != t && s.type_ == t.type_));
    assert!(pairs().any(|(s, _)| s.role == TG_OBJECT_R) && pairs().any(|(s, t)| s.role != t.role));
    assert!(pairs().any(|(s, _)| policy.types[s.type_ as usize].bounds != 0));
    let (above, below) = (contexts::dominates, |a: &_, b: &_| contexts::dominates(b, a));
    let lows = || pairs().map(|(s, t)| (&s.range.low, &t.range.low));
    assert!(lows().any(|(a, b)| above(a, b) && !below(a, b)) && lows().any(|(a, b)| below(a, b) && !above(a, b)));
    assert!(lows().any(|(a, b)| !above(a, b) && !below(a, b)));
    assert!(lows().any(|(a, _)| a.categories.is_empty()) && lows().any(|(a, _)| a.categories.iter().count() == 1024));

    let transitions = batch(Kind::Transition);
    let names: Vec<&str> = transitions.questions.iter().filter_map(|question| question.name.as_deref()).collect();
    let known = |name: &&str| policy.name_transitions.iter().any(|rule| rule.name == **name);
    assert!(names.iter().any(known) && !names.iter().all(known), "{names:?}");
    let validated = batch(Kind::Validate);
    assert!(validated.questions.iter().any(|q| !policy.classes[q.class as usize].validatetrans.is_empty()));
}

#[test]
fn knows_a_context_again_that_libsepol_writes_wrong() {
    let (text, wrong) = ("system_u:object_r:etc_t:s0:c574,c575,c1020", "system_u:object_r:etc_t:s0:c574,c959,c1020");
    let mut oracle = Oracle::load(&own().image).unwrap();
    let sid = oracle.sid(text);
    let label = Label { text: oracle.context(sid.unwrap()).unwrap(), sid };
    assert_eq!(label.text, wrong);
    drop(oracle);
    let mut peer = Libsepol::new(&own().image);
    let server = own().server().unwrap();
    peer.begin(&Subject { contexts: &[], levels: server.levels(), texts: &[text.into()] }).unwrap();
    let label = Label { sid: peer.sids.first().copied(), ..label };
    assert!(peer.means(text, &label) && !peer.means(wrong, &label));
}
