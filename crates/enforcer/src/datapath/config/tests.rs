use super::*;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("/n"), text).map_err(|cause| cause.to_string())
}

fn error(text: &str) -> String {
    parse(text).unwrap_err()
}

const WHOLE: &str = r#"
[[doi]]
number = 1
tag = "bitmap"
levels = { s0 = 0, s3 = 5 }
categories = { c0 = 1 }

[[doi]]
number = 0x10
tag = "sealed"

[[zone]]
name = "cluster"
addresses = ["10.77.0.0/24", "fd00::/64"]
doi = 16
unlabelled = "refuse"
range = "s0-s3:c0.c15"

[[zone]]
addresses = ["10.77.0.9"]
unlabelled = "u:r:t:s0"

[[zone]]
addresses = ["0.0.0.0/0"]
doi = 1

[sealed]
node = 7
keys = "/k"
"#;

#[test]
fn reads_domains_zones_and_the_seal() {
    let Config { dois, zones, seal } = parse(WHOLE).unwrap();
    let numbers = |pairs: &[(&str, u16)]| pairs.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
    let translation = Translation { levels: numbers(&[("s0", 0), ("s3", 5)]), categories: numbers(&[("c0", 1)]) };
    assert_eq!(dois[0], Doi { line: 2, number: 1, tag: Tag::Bitmap, translation: Some(translation) });
    assert_eq!(dois[1], Doi { line: 8, number: 16, tag: Tag::Sealed, translation: None });
    let cluster = Zone {
        line: 12,
        name: Some("cluster".to_owned()),
        addresses: ["10.77.0.0/24", "fd00::/64"].map(|text| text.parse().unwrap()).to_vec(),
        doi: Some(1),
        unlabelled: Unlabelled::Refused,
        range: Some("s0-s3:c0.c15".to_owned()),
    };
    assert_eq!(zones[0], cluster);
    assert_eq!(zones[1].unlabelled, Unlabelled::Context("u:r:t:s0".to_owned()));
    assert_eq!((zones[1].doi, zones[2].doi, &zones[2].unlabelled), (None, Some(0), &Unlabelled::Initial));
    assert_eq!(seal, Some(Seal { node: 7, keys: "/k".into(), tolerance: 1, port: 4748 }));
}

#[test]
fn labels_nothing_without_zones() {
    assert_eq!(parse("# nothing\n").unwrap(), Config::default());
    let config = parse("[[doi]]\nnumber = 1\ntag = \"ranges\"\n").unwrap();
    assert!(config.zones.is_empty() && config.dois.len() == 1);
}

/// What is wrong in a file, the line, and what the message says: entry, value, remedy.
const WRONG: &[(&str, usize, &[&str])] = &[
    ("[[doi]\n", 1, &["it is not TOML"]),
    ("[[zones]]\n", 1, &["zones", "write zone"]),
    ("[zone]\n", 1, &["write [[zone]]"]),
    ("zone = [1]\n", 1, &["write [[zone]]"]),
    ("[[sealed]]\n", 1, &["write [sealed]"]),
    ("[[doi]]\nnumber = 1\ntag = \"bitmap\"\nlevel = {}\n", 4, &["[[doi]] 1: ", "level;", "write levels"]),
    ("[[zone]]\nunlabeled = \"refuse\"\n", 2, &["[[zone]] 1: ", "write unlabelled"]),
    ("[sealed]\nwhatever = 1\n", 2, &["it has node, keys, tolerance, port"]),
    ("[[doi]]\ntag = \"bitmap\"\n", 1, &["number is missing", "number = 1"]),
    ("[[doi]]\nnumber = 0\n", 2, &["number = 0", "from 1 to 4294967295"]),
    ("[[doi]]\nnumber = 4294967296\n", 2, &["from 1 to 4294967295"]),
    ("[[doi]]\nnumber = \"1\"\n", 2, &["number = \"1\"", "it is a number"]),
    ("[[doi]]\nnumber = 1\ntag = 1\n", 3, &["tag = 1", "quotation marks"]),
    ("[[doi]]\nnumber = 1\ntag = \"bitmaps\"\n", 3, &["tag = \"bitmaps\"", "write \"bitmap\""]),
    ("[[doi]]\nnumber = 1\ntag = \"1\"\n", 3, &["bitmap, enumerated, ranges, sealed"]),
    ("[[doi]]\nnumber = 1\ntag = \"sealed\"\n", 3, &["add [sealed]"]),
    (
        "[sealed]\nnode = 1\n[[doi]]\nnumber = 1\ntag = \"sealed\"\nlevels = {}\n",
        5,
        &["tag = \"sealed\"", "leave out levels"],
    ),
    ("[[doi]]\nnumber = 1\ntag = \"ranges\"\n[[doi]]\nnumber = 1\n", 5, &["[[doi]] 2: number = 1", "leave one out"]),
    ("[[doi]]\nnumber = 1\ntag = \"ranges\"\nlevels = { a = 256 }\n", 4, &["levels: a = 256", "from 0 to 255"]),
    ("[[doi]]\nnumber = 1\ntag = \"ranges\"\ncategories = { a = 1024 }\n", 4, &["from 0 to 1023"]),
    ("[[doi]]\nnumber = 1\ntag = \"ranges\"\nlevels = { a = 1, b = 1 }\n", 4, &["levels: b = 1", "a has the same"]),
    ("[[doi]]\nnumber = 1\ntag = \"ranges\"\nlevels = [1]\n", 4, &["levels = [1]", "NAME = NUMBER"]),
    ("[[zone]]\n", 1, &["[[zone]] 1: addresses is missing"]),
    ("[[zone]]\naddresses = []\n", 1, &["addresses is missing"]),
    ("[[zone]]\naddresses = \"10.0.0.1\"\n", 2, &["it is a list of texts"]),
    ("[[zone]]\naddresses = [1]\n", 2, &["addresses = 1", "quotation marks"]),
    ("[[zone]]\naddresses = [\"10.0.0.1/8\"]\n", 2, &["addresses = \"10.0.0.1/8\"", "write 10.0.0.0/8"]),
    ("[[zone]]\naddresses = [\n\"10.0.0.1\",\n\"127.1.0.0/16\"]\n", 4, &["127.1.0.0/16", "leave it out"]),
    ("[[zone]]\naddresses = [\"::1\"]\n", 2, &["stay on this machine"]),
    ("[[zone]]\naddresses = [\"::ffff:10.0.0.0/104\"]\n", 2, &["as an address of IPv4"]),
    ("[[zone]]\naddresses = [\"10.0.0.1\", \"10.0.0.1/32\"]\n", 2, &["[[zone]] 1 has the same network"]),
    (
        "[[zone]]\naddresses = [\"::/0\"]\n[[zone]]\naddresses = [\"::/0\"]\n",
        4,
        &["[[zone]] 2: ", "[[zone]] 1 has the same network; leave one out"],
    ),
    ("[[zone]]\naddresses = [\"::/0\"]\ndoi = 7\n", 3, &["doi = 7", "there is none", "leave doi out"]),
    ("[[zone]]\naddresses = [\"::/0\"]\nunlabelled = \"refuse\"\n", 3, &["all would be dropped", "add doi"]),
    ("[[zone]]\naddresses = [\"::/0\"]\nrange = \"s0\"\n", 3, &["range = \"s0\"", "leave it out"]),
    ("[[zone]]\nname = \"a b\"\n", 2, &["name = \"a b\"", "choose another"]),
    ("[[zone]]\nname = \"a\"\naddresses = [\"::/0\"]\n[[zone]]\nname = \"a\"\n", 5, &["another [[zone]] has it"]),
    ("[sealed]\n", 1, &["node is missing"]),
    ("[sealed]\nnode = 65536\n", 2, &["node = 65536", "from 0 to 65535"]),
    ("[sealed]\nnode = 1\nkeys = \"k\"\n", 3, &["keys = \"k\"", "the whole path"]),
    ("[sealed]\nnode = 1\ntolerance = 16385\n", 3, &["from 0 to 16384"]),
    ("[sealed]\nnode = 1\nport = 65536\n", 3, &["from 0 to 65535"]),
];

#[test]
fn refuses_what_is_wrong_and_says_where_and_what_helps() {
    for (text, line, parts) in WRONG {
        let error = error(text);
        assert!(error.starts_with(&format!("/n:{line}: ")), "{text}: {error}");
        for part in *parts {
            assert!(error.contains(part), "{text}: no {part:?} in: {error}");
        }
    }
}

#[test]
fn takes_a_default_zone_around_the_loopback_addresses() {
    for text in ["0.0.0.0/0", "::/0", "126.0.0.0/7", "::/96"] {
        assert!(parse(&format!("[[zone]]\naddresses = [\"{text}\"]\n")).is_ok(), "{text}");
    }
}

#[test]
fn refuses_more_than_there_is_room_for() {
    let doi = |number| format!("[[doi]]\nnumber = {number}\ntag = \"ranges\"\n");
    let dois: String = (1..=TG_DOIS).map(doi).collect();
    assert!(parse(&dois).is_ok());
    assert!(error(&(dois + &doi(99))).contains("[[doi]] 17: there are more than 16 domains"));
    let zone = |number: u32| format!("[[zone]]\naddresses = [\"10.0.{}.{}\"]\n", number / 256, number % 256);
    let zones: String = (0..TG_ZONES).map(zone).collect();
    assert!(parse(&zones).is_ok());
    assert!(error(&(zones + &zone(TG_ZONES))).contains("more than 256 zones"));
    let hosts: Vec<String> =
        (0..TG_ZONE_RANGES / 2).map(|host| format!("\"10.0.{}.{}\"", host / 128, host % 128 * 2)).collect();
    let zone = |hosts: &[String]| format!("[[zone]]\naddresses = [{}]\n", hosts.join(", "));
    assert!(parse(&zone(&hosts[1..])).is_ok());
    assert!(
        error(&zone(&hosts)).contains("IPv4's addresses into 2049 ranges, and there is room for 2048; join networks")
    );
}

#[test]
fn asks_other_machines_only_where_labels_are_sealed() {
    let port = |seal: &str, tag: &str| {
        let text = format!(
            "[sealed]\nnode = 1\n{seal}\n[[doi]]\nnumber = 5\ntag = \"sealed\"\n[[doi]]\nnumber = 6\ntag = \"bitmap\"\n\
             [[zone]]\naddresses = [\"10.0.0.0/8\", \"fd00::/8\"]\ndoi = {tag}\n[[zone]]\naddresses = [\"10.1.0.0/16\"]\n"
        );
        let config = Config::parse(Path::new("/n"), &text).unwrap();
        let seals =
            ["10.2.3.4", "10.1.2.3", "fd00::1", "11.0.0.1"].map(|address| config.seals(address.parse().unwrap()));
        (config.port().map_or(0, NonZeroU16::get), seals)
    };
    assert_eq!(port("", "5"), (4748, [true, false, true, false]));
    assert_eq!(port("port = 99", "5").0, 99);
    assert_eq!(port("port = 0", "5").0, 0);
    assert_eq!(port("", "6"), (0, [false; 4]));
}
