use std::path::Path;

use tollgate_policy::model::{Category, Sensitivity};

use super::*;

const SENSITIVITIES: [&str; 3] = ["s0", "s1", "s3"];

fn policy(mls: bool) -> Policy {
    let sensitivity = |name: &str| Sensitivity { name: name.to_owned(), ..Sensitivity::default() };
    let category = |name: &str| Category { name: name.to_owned(), aliases: vec![format!("{name}_alias")] };
    Policy {
        mls,
        sensitivities: ["", "s0", "s1", "s3"].map(sensitivity).to_vec(),
        categories: ["c0", "c1", "c2"].map(category).to_vec(),
        ..Policy::default()
    }
}

/// A machine whose contexts are `sidN`, and whose levels are numbered by their sensitivity.
struct Numbered;

impl Numbers for Numbered {
    fn sid(&mut self, context: &str) -> Result<Sid, String> {
        context.strip_prefix("sid").and_then(|sid| sid.parse().ok()).ok_or_else(|| "it is no context".to_owned())
    }
    fn level(&mut self, level: &Level) -> Result<u32, String> {
        Ok(level.sensitivity * 100 + level.categories.iter().count() as u32)
    }
}

fn table(text: &str, policy: &Policy) -> Result<Box<tg_datapath>, String> {
    let keys = "7 000102030405060708090a0b0c0d0e0f\n9 ffffffffffffffffffffffffffffffff\n";
    let networks = Networks {
        file: "/n".into(),
        config: Config::parse(Path::new("/n"), text).unwrap(),
        keys: Keys::of_text(Path::new("/k"), keys).unwrap(),
    };
    of(&networks, policy, &mut Numbered).map_err(|cause| cause.to_string())
}

fn error(text: &str) -> String {
    table(text, &policy(true)).unwrap_err()
}

#[test]
fn writes_nothing_without_networks() {
    assert!(*table("", &policy(false)).unwrap() == tg_datapath::default());
}

#[test]
fn writes_zones_with_their_domain_their_context_and_their_levels() {
    let text = "[[doi]]\nnumber = 5\ntag = \"ranges\"\n\
                [[zone]]\naddresses = [\"10.0.0.0/8\"]\ndoi = 5\nunlabelled = \"refuse\"\nrange = \"s0-s3:c0,c1\"\n\
                [[zone]]\naddresses = [\"10.1.0.0/16\", \"fd00::1\"]\nunlabelled = \"sid40\"\n";
    let table = table(text, &policy(true)).unwrap();
    assert_eq!((table.zones, table.doi[0].number, table.doi[0].tag, table.doi[0].translated), (2, 5, 5, 0));
    let flags = TG_ZONE_REQUIRED | TG_ZONE_LIMITED;
    assert_eq!(table.zone[0], tg_zone { doi: 1, flags, unlabelled: 0, low: 100, high: 302, labels: 0, connections: 0 });
    assert_eq!(table.zone[1], tg_zone { unlabelled: 40, ..tg_zone::default() });
    let ranges4: Vec<(u32, u32)> = table.range4.iter().map(|range| (range.first, range.zone)).collect();
    assert_eq!(table.ranges4, 5);
    assert_eq!(ranges4[..6], [(0, 0), (0xa00_0000, 1), (0xa01_0000, 2), (0xa02_0000, 1), (0xb00_0000, 0), (0, 0)]);
    let ranges6: Vec<([u64; 2], u32)> = table.range6.iter().map(|range| (range.first, range.zone)).collect();
    let one = 0xfd00_u64 << 48;
    assert_eq!(table.ranges6, 3);
    assert_eq!(ranges6[..3], [([0, 0], 0), ([one, 1], 2), ([one, 2], 0)]);
}

#[test]
fn translates_what_is_listed_and_nothing_else() {
    let text =
        "[[doi]]\nnumber = 5\ntag = \"bitmap\"\nlevels = { s3 = 200 }\ncategories = { c0 = 2, c2_alias = 1023 }\n";
    let table = table(text, &policy(true)).unwrap();
    let doi = &table.doi[0];
    let mapped = |list: &[u16]| {
        let all = list.iter().enumerate().filter(|(_, number)| **number != TG_UNMAPPED as u16);
        all.map(|(place, number)| (place, *number)).collect::<Vec<_>>()
    };
    assert_eq!(doi.translated, 1);
    let place = SENSITIVITIES.iter().position(|name| *name == "s3").unwrap();
    assert_eq!(mapped(&doi.sensitivity_out), [(place, 200)]);
    assert_eq!(mapped(&doi.sensitivity_in), [(200, place as u16)]);
    assert_eq!(mapped(&doi.category_out), [(0, 2), (2, 1023)]);
    assert_eq!(mapped(&doi.category_in), [(2, 0), (1023, 2)]);
}

#[test]
fn maps_no_category_where_only_levels_are_listed() {
    let table = table("[[doi]]\nnumber = 5\ntag = \"bitmap\"\nlevels = { s0 = 0 }\n", &policy(true)).unwrap();
    assert!(table.doi[0].category_out.iter().all(|number| *number == TG_UNMAPPED as u16));
}

#[test]
fn writes_keys_as_the_words_that_the_mac_reads() {
    let text = "[sealed]\nnode = 7\ntolerance = 3\n[[doi]]\nnumber = 1\ntag = \"sealed\"\n\
                [[zone]]\naddresses = [\"10.0.0.1\"]\ndoi = 1\n";
    let table = table(text, &policy(false)).unwrap();
    let seal = &table.seal;
    assert_eq!((seal.keys, seal.number, seal.node, seal.tolerance), (2, [7, 9], 7, 3));
    assert_eq!(seal.key[0], [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
    assert_eq!((seal.key[1], table.doi[0].tag), ([u64::MAX; 2], 129));
}

#[test]
fn refuses_what_the_policy_does_not_have_and_names_the_entry() {
    let doi = "[[doi]]\nnumber = 5\ntag = \"bitmap\"\n";
    let zone = "[[zone]]\nname = \"z\"\naddresses = [\"10.0.0.1\"]\ndoi = 5\n";
    for (text, parts) in [
        (format!("{doi}levels = {{ s2 = 1 }}\n"), ["/n:1: [[doi]] 5: levels: s2: ", "like it: s0, s1, s3"]),
        (format!("{doi}categories = {{ c9 = 1 }}\n"), ["/n:1: [[doi]] 5: categories: c9: ", "no category `c9`"]),
        (format!("{doi}categories = {{ c0 = 1, c0_alias = 2 }}\n"), ["categories: c0_alias: ", "leave one out"]),
        (format!("{doi}{zone}unlabelled = \"sid\"\n"), ["/n:4: [[zone]] 1 (z): unlabelled = \"sid\": ", "no context"]),
        (
            format!("{doi}{zone}range = \"s0-s9\"\n"),
            ["/n:4: [[zone]] 1 (z): range = \"s0-s9\": ", "no sensitivity `s9`"],
        ),
        (format!("{doi}{zone}range = \"s1-s0\"\n"), ["range = \"s1-s0\"", "exchange them"]),
        (format!("{doi}{zone}range = \"s0:c0-s1\"\n"), ["range = \"s0:c0-s1\"", "add categories"]),
    ] {
        let error = error(&text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
    let error = table(doi, &policy(false)).unwrap_err();
    assert!(error.contains("tag = \"bitmap\": the policy has no levels (MLS); write tag = \"sealed\""), "{error}");
}
