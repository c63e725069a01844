//! Labelled networks: what an administrator configures, and what he is shown.
//!
//! QEMU and kernels are needed: without them these tests fail, and say so.

use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    steps::Guest,
};

/// Waits until the daemon is gone: its process stays as a zombie, because nothing reaps it in a guest.
const GONE: &str = "while tollgate mode; do sleep 0.2; done >/dev/null 2>&1";

const FILE: &str = "/etc/tollgate/network.toml";
const KEYS: &str = "/etc/tollgate/network.keys";

/// The contexts and levels are those of tests/enforcer/policy.cil.
const NETWORKS: &str = r#"
[[doi]]
number = 1
tag = "bitmap"
levels = { s0 = 0, s3 = 5 }

[[doi]]
number = 16
tag = "sealed"

[[zone]]
name = "cluster"
addresses = ["10.77.0.0/24", "fd00::/64"]
doi = 16
unlabelled = "refuse"

[[zone]]
addresses = ["10.77.0.9"]
doi = 1
unlabelled = "system_u:object_r:one:s0"
range = "s0-s3:c0.c15"

[sealed]
node = 7
"#;

/// A name in `range` that the policy does not have.
const BROKEN: &str =
    "[[doi]]\nnumber = 1\ntag = \"ranges\"\n\n[[zone]]\naddresses = [\"10.0.0.0/8\"]\ndoi = 1\nrange = \"s0-s99\"\n";

#[test]
fn shows_labelled_networks_and_keeps_them_when_the_file_is_broken() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let (good, broken) = (scratch.file("good.toml", NETWORKS), scratch.file("broken.toml", BROKEN));
        let other = scratch.file("other.toml", "[[zone]]\naddresses = [\"192.0.2.0/24\"]\n");
        let killed = format!("kill -9 $(daemon); {GONE}");
        let generation = "tollgate status --json | grep '\"generation\":'";
        let steps = Guest::new(&scratch, kernel)
            .with(&good, "/good.toml")
            .with(&broken, "/broken.toml")
            .with(&other, "/other.toml")
            .step("none", "tollgate enforce /policy; tollgate net status")
            .step("no keys", "mkdir -p /etc/tollgate; tollgate net check /good.toml")
            .step("key", &format!("tollgate net key new --file {KEYS}; ls -l {KEYS}"))
            .step("second", &format!("tollgate net key new --second --file {KEYS}; tollgate net key swap"))
            .step("checked", "tollgate net check /good.toml")
            .step("check", "tollgate net check /broken.toml --policy /policy")
            .step("start", "tollgate enforce --check /policy --network /broken.toml")
            .step("reloaded", &format!("cp /good.toml {FILE}; tollgate net map; tollgate reload /policy"))
            .step("map", "tollgate net map")
            .step("host", "tollgate net map 10.77.0.9")
            .step("elsewhere", "tollgate net map 192.0.2.1")
            .step("doi", "tollgate net doi")
            .step("status", "tollgate net status")
            .step("json", "tollgate net status --json")
            .step("adopted", &format!("{killed}; tollgate enforce /policy; {generation}"))
            .step("broken", &format!("cp /broken.toml {FILE}; tollgate reload /policy"))
            .step("hangup", "kill -HUP $(daemon); sleep 3; grep network.toml /var/log/tollgate/daemon.log")
            .step("kept", "tollgate net map")
            .step(
                "exposed",
                &format!("cp /good.toml {FILE}; chmod 644 {KEYS}; tollgate reload /policy; chmod 600 {KEYS}"),
            )
            .step("not taken over", &format!("cp /broken.toml {FILE}; {killed}; tollgate enforce /policy"))
            .step(
                "taken over",
                &format!("cp /other.toml {FILE}; tollgate enforce /policy; tollgate net map; {generation}"),
            )
            .step("not found", "tollgate stop; tollgate enforce /policy --network nowhere.toml")
            .step("named", "cd / && tollgate enforce /policy --network other.toml && tollgate net map")
            .run();
        steps["none"].is(1, &["none: /etc/tollgate/network.toml has no [[zone]]"]);
        steps["no keys"].is(1, &["cannot read the keys /etc/tollgate/network.keys", "tollgate net key new --file"]);
        steps["key"].is(0, &["from the next reload on, key 1 seals\n", "-rw-------"]);
        steps["second"].is(0, &["key 1 seals, and key 2 opens\n", "key 2 seals, and key 1 opens\n"]);
        steps["checked"].is(0, &["/good.toml fits /policy, generation 1: 2 zones and 2 domains"]);
        steps["check"].is(1, &["/broken.toml:5: [[zone]] 1: range = \"s0-s99\": ", "no sensitivity `s99`"]);
        steps["start"].is(2, &["/broken.toml:5: [[zone]] 1: "]);
        steps["reloaded"].is(0, &["no network is labelled", "generation 2 is in force"]);
        let map = "NETWORK       ZONE     LABELS          LEVELS        WITHOUT LABEL\n\
                   10.77.0.0/24  cluster  doi 16, sealed  all           dropped\n\
                   fd00::/64     cluster  doi 16, sealed  all           dropped\n\
                   10.77.0.9     -        doi 1, bitmap   s0-s3:c0.c15  system_u:object_r:one:s0\n";
        assert_eq!(steps["map"].is(0, &[]).text, map);
        assert!(!steps["host"].is(0, &["10.77.0.9  -     doi 1, bitmap"]).text.contains("cluster"));
        steps["elsewhere"].is(1, &["192.0.2.1 is in no zone"]);
        steps["doi"].is(0, &["s0=0 s3=5", "whole contexts", "as node 7 by key 2; key 1 opens, too"]);
        steps["status"].is(0, &["in packets from and to 2 zones", "          0  dropped\n"]);
        let json = steps["json"].is(0, &[]).json();
        assert_eq!((&json["packets"]["labelled"], &json["packets"]["dropped_seal"]), (&0.into(), &0.into()), "{json}");
        assert_eq!((&json["seal"]["keys"][0], &json["zones"][0]["unlabelled"]), (&2.into(), &serde_json::Value::Null));
        // What is in force is what the file says, so nothing was put in force anew.
        steps["adopted"].is(0, &["\"generation\": 2"]);
        let lacks = "/etc/tollgate/network.toml:5: [[zone]] 1: range = \"s0-s99\": ";
        steps["broken"].is(2, &[lacks, "no sensitivity `s99`"]);
        steps["hangup"].is(0, &["the policy in force stays", lacks]);
        assert_eq!(steps["kept"].is(0, &[]).text, map);
        assert!(steps["exposed"].text.contains("mode 644): run `chown root:root"), "{}", steps["exposed"].text);
        steps["not taken over"].is(2, &[lacks]);
        steps["taken over"].is(0, &["192.0.2.0/24  -     none", "\"generation\": 3"]);
        steps["not found"].is(2, &["cannot read /nowhere.toml", "a file of labelled networks that exists"]);
        steps["named"].is(0, &["192.0.2.0/24"]);
    }
}
