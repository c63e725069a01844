//! Good input of each target, made anew by the code that is tested, so that it is of the present formats.

use tollgate_audit::text;
use tollgate_client::protocol::{self, Attribute, Mode, Refusal, Request};
use tollgate_fleet::{Hash, Manifest, Register, Root, Signed, State, document::Text, register::Request};
use tollgate_guard::{Database, Digest};
use tollgate_netlabel::{
    Doi, Level,
    calipso::Calipso,
    cipso::{Cipso, Tag},
    dsm::Dsm,
    ipv4, ipv6,
    question::{Message, Question},
    sealed::{Key, Sealed},
};
use tollgate_policy::{
    built::{Built, SECTIONS},
    sepol::{self, CilFile, Options},
};
use tollgate_signing::SecretKey;

use crate::sample::{self, Layout};

const POLICY: &[u8] = include_bytes!("../../crates/policy/src/dump/everything.cil");

/// The domain of the labels in packets.
pub const DOI: Doi = match Doi::new(1) {
    Ok(doi) => doi,
    Err(_) => panic!("this is not 0"),
};

/// The key of messages between machines.
pub const KEY: Key = Key { number: 1, secret: *b"key of the seeds" };

const SEALED: Sealed = Sealed { key: 1, window: 2, node: 3, generation: 4, context: 5, mac: 6 };

/// Targets by name, each with its seeds.
pub fn all() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let built = built();
    vec![
        ("audit", audit()),
        ("btf", vec![sample::btf()]),
        ("built", vec![built.to_bytes()]),
        ("dump", vec![built.model]),
        ("fleet", fleet()),
        ("guard", guard().iter().map(Database::to_bytes).collect()),
        ("guard_text", guard().iter().map(|database| database.to_string().into_bytes()).collect()),
        ("ipv4_options", ipv4_options()),
        ("ipv6_options", ipv6_options()),
        ("kallsyms", kallsyms()),
        ("package", vec![include_bytes!("../seeds/module.pp").to_vec()]),
        ("protocol", protocol()),
        ("question", question()),
    ]
}

fn built() -> Built {
    let file = CilFile { name: "everything.cil".into(), text: POLICY.to_vec() };
    let compiled = sepol::compile(&[file], &Options::default()).expect("compile the policy of the seeds");
    Built::from_compiled(compiled).expect("lay out the policy of the seeds")
}

/// A document of each kind, signed.
fn fleet() -> Vec<Vec<u8>> {
    let key = SecretKey::of_seed("seed", [7; 32]).expect("a key of the seeds");
    let digits = key.public().digits();
    let (head, hash) = ("fleet example", Hash::of(b"content"));
    let times = "made 2026-11-27T12:00:00Z\nexpires 2026-12-27T12:00:00Z";
    let line = key.public().line();
    let role = |name: &str| format!("{name} 1\n{line}\n");
    let parts: String =
        SECTIONS.iter().map(|section| format!("part {} {hash} 10 {hash} 5\n", section.name())).collect();
    let stages =
        "stage group canary shadow hold 60 denials 5 missing 0\nstage share 100 enforcing hold 0 denials 0 missing 0\n";
    let manifest = format!(
        "{head}\ngroup web\nroot 1\nnumber 1\nbefore none\nbase {hash}\n{times}\n{parts}{stages}rollout open 1\n"
    );
    let root = format!("{head}\nversion 1\n{times}\n{}{}{}", role("root"), role("publish"), role("approve"));
    let member = format!("node a {digits} web canary\n");
    let register = format!("{head}\nnumber 1\nmade 2026-11-27T12:00:00Z\n{member}");
    let request = format!("{head}\n{member}made 2026-11-27T12:00:00Z\n");
    let state = format!(
        "{head}\nnode a\nsequence 1\nmade 2026-11-27T12:00:00Z\nnumber 1\nmanifest {hash}\ngeneration {hash}\ntables none\nmode enforcing\nhooks 150\nunenforced 0\nfailures 0\ndenials 3\n"
    );
    vec![
        signed::<Manifest>("manifest", &manifest, &key),
        signed::<Root>("root", &root, &key),
        signed::<Register>("register", &register, &key),
        signed::<Request>("request", &request, &key),
        signed::<State>("state", &state, &key),
    ]
}

fn signed<T: Text>(kind: &str, text: &str, key: &SecretKey) -> Vec<u8> {
    let text = format!("tollgate fleet {kind} 1\n{text}");
    let mut document = Signed::<T>::parse(text.as_bytes()).expect("a document of the seeds");
    document.sign(key);
    document.bytes()
}

/// The guard's database, empty and with an item of each kind.
fn guard() -> [Database; 2] {
    let [su, old, sh] = ["su", "old", "sh"].map(|content| Digest::of(content.as_bytes()));
    let text = format!(
        "word BOP\ndefault daemon warn\nprogram /bin/su enforce {su} {old}\nprogram /bin/a\\040shell learn {sh}\n\
         allow /bin/su exec /bin/a\\040shell free\nallow /bin/su exec /bin/su\nallow /bin/su setuid any\n\
         allow /bin/a\\040shell setuid 7\nallow /bin/su chmod g+s\n"
    );
    [Database::default(), Database::parse(&text).expect("the lines are right")]
}

fn kallsyms() -> Vec<Vec<u8>> {
    let layouts =
        [Layout::OffsetsFirst, Layout::WithOrder, Layout::OffsetsLast, Layout::PlainOffsets, Layout::OwnPlaces];
    layouts.map(sample::kallsyms).into()
}

/// Records of each kind of object, as the kernel's audit and as our own log have them.
fn audit() -> Vec<Vec<u8>> {
    const HEAD: &str = "type=AVC msg=audit(1700000001.234:17): avc:  denied  { read open } for  pid=12 comm=\"cat\"";
    const TAIL: &str = "scontext=user_u:user_r:user_t:s0-s0:c0.c9 tcontext=system_u:object_r:shadow_t:s0 tclass=file";
    let objects = [
        "path=\"/etc/shadow\" dev=\"sda1\" ino=13",
        "path=2F746D702F61206200 dev=\"sda1\" ino=13 ioctlcmd=0x5412",
        "name=\"new\"",
        "capability=12",
        "opid=1 ocomm=\"init\"",
        "kmod=\"fs-nothing\"",
        "anonclass=\"[userfaultfd]\"",
        "ipc_key=-7",
        "saddr=::1 src=80 daddr=10.0.0.1 dest=8080 netif=eth0",
    ];
    let mut seeds: Vec<String> =
        objects.iter().map(|object| format!("{HEAD} {object} {TAIL} permissive=0 repeated=3")).collect();
    let logged = seeds.iter().filter_map(|line| serde_json::to_string(&text::parse(line)?).ok());
    seeds.extend(logged.collect::<Vec<_>>());
    seeds.push("type=USER_SELINUX_ERR msg=audit(1.000:2): msg='avc:  lost 17 events: the ring buffer was full'".into());
    seeds.push("[ 3.1] kauditd_printk_skb: 31 callbacks suppressed\naudit: audit_lost=7 audit_rate_limit=0".into());
    seeds.into_iter().map(String::into_bytes).collect()
}

/// Requests and answers.
fn protocol() -> Vec<Vec<u8>> {
    let context = || "system_u:system_r:httpd.t:s0".to_owned();
    let requests = [
        Request::Status,
        Request::SetMode { mode: Mode::Permissive, domain: Some("httpd.t".into()) },
        Request::Reload { accept_missing: true },
        Request::Get(Attribute::Current),
        Request::Sid { attribute: Attribute::Exec, context: context() },
        Request::Text(7),
        Request::Access { source: context(), target: context(), class: "file".into() },
        Request::SetLabel(context()),
        Request::Count(true),
    ];
    let replies = [Ok(vec![context(), String::new()]), Err(Refusal::new(13, "not 100 % allowed"))];
    let lines = requests.iter().map(Request::line).chain(replies.iter().map(protocol::reply_line));
    let sanity = format!("{0}\t{0}\tfile\tread,-write\n", context());
    lines.chain([protocol::greeting("4f1c0f"), sanity]).map(String::into_bytes).collect()
}

/// A label of each format, alone and after another option.
fn ipv4_options() -> Vec<Vec<u8>> {
    const ROUTER_ALERT: [u8; 4] = [148, 4, 0, 0];
    let level = || Level::new(3, [0, 1, 2, 9, 11]);
    let tags = [Tag::Bitmap(level()), Tag::Enumerated(level()), Tag::Ranges(level()), Tag::Local(7)];
    let cipso = tags.map(|tag| Cipso { doi: DOI, tag }.write_words().expect("these few categories have room"));
    let mut seeds = Vec::from(cipso);
    seeds.push(Dsm { context: 2, node: 7 }.write());
    seeds.push(SEALED.write_cipso(DOI));
    seeds.push(ipv4::pad(SEALED.write_ipv4()));
    let after_another: Vec<_> = seeds.iter().map(|seed| [&ROUTER_ALERT, &seed[..]].concat()).collect();
    seeds.extend(after_another);
    seeds
}

fn ipv6_options() -> Vec<Vec<u8>> {
    let levels = [Level::new(3, [0, 1]), Level::new(0, []), Level::new(255, [64, 1951])];
    let options = levels.map(|level| Calipso { doi: DOI, level }.write().expect("no category is too high"));
    options.iter().chain([&SEALED.write_ipv6()]).map(|option| ipv6::header(17, option)).collect()
}

fn question() -> Vec<Vec<u8>> {
    let question = Question { nonce: [3; 16], generation: 4, window: 5, identifier: 6, from: 7, to: 8 };
    let context = "system_u:system_r:web_t:s0:c1".to_owned();
    let messages =
        [Message::Question(question), Message::Answer(question, None), Message::Answer(question, Some(context))];
    messages.map(|message| message.seal(&KEY).to_vec()).into()
}
