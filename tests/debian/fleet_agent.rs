//! The fleet's agent on a Debian system, as the package installs it: a service of a user that has no privilege.

use super::{
    guest::{Guest, copy},
    installed::said,
    packages,
    system::image,
};
use crate::program::Scratch;

/// Makes a fleet of one node on the node itself, as docs/fleet.md says, and looks at the agent.
const SCRIPT: &str = r#"
cd /root; dpkg -i /root/1.deb
store="--store /srv/fleet --root /root/fleet.root"
for key in root publish approve; do tollgate key new $key --name $key; done
tollgate fleet init example $store --sign root --root-key root.pub --publish-key publish.pub --approve-key approve.pub
mkdir -p /etc/tollgate/fleet; cp fleet.root /etc/tollgate/fleet/root
printf 'node = "web1"\ngroup = "web"\nagent = "tollgate-fleet"\n' >/etc/tollgate/fleet/node
install -d -o tollgate-fleet /srv/fleet/states /srv/fleet/requests
install -d -o tollgate-fleet -m 700 /var/lib/tollgate-fleet
tollgate fleet token web1 --group web --tokens tokens --out token
install -o tollgate-fleet -m 600 token /var/lib/tollgate-fleet/token
runuser -u tollgate-fleet -- tollgate fleet enrol web1 --store /srv/fleet --root /etc/tollgate/fleet/root --group web \
    --token /var/lib/tollgate-fleet/token; echo "enrolled: $?"
tollgate fleet approve --tokens tokens $store --sign approve; echo "approved: $?"
echo 'TOLLGATE_FLEET_OPTIONS="--store /srv/fleet"' >/etc/default/tollgate-fleet
systemctl enable --now tollgate tollgate-fleet
tollgate fleet publish /etc/tollgate/policy $store --group web --sign publish \
    --stage 'share 100 permissive hold 0 denials 4294967295 missing 0'
tollgate fleet report $store --group web --wait 10min; echo "report: $?"
pid() { systemctl show -p MainPID --value tollgate-fleet; }
first=$(pid)
echo "agent: $(stat -c %U /proc/$first), capabilities $(sed -n 's/^CapEff:\t//p' /proc/$first/status)"
echo "daemon: $(stat -c %U /proc/$(cat /run/tollgate/lock))"
# What another user brings is refused, though it has all that the agent has.
cp -r /var/lib/tollgate-fleet /var/lib/other; chown -R nobody /var/lib/other
runuser -u nobody -- tollgate fleet agent --store /srv/fleet --kept /var/lib/other --once; echo "another user: $?"
kill -9 $first
for i in $(seq 60); do [ $(pid) != 0 ] && [ $(pid) != $first ] && break; sleep 1; done
[ $(pid) != $first ] && echo "killed: it runs again"
for i in $(seq 60); do tollgate status | grep -q 'agent *runs' && echo "status: runs" && break; sleep 1; done
systemctl stop tollgate-fleet
for i in $(seq 60); do tollgate status | grep -q 'agent *has ended' && echo "status: has ended" && break; sleep 1; done
tollgate status; journalctl --no-pager -u tollgate-fleet | tail -20
"#;

#[test]
#[ignore = "takes long: make verify"]
fn runs_the_agent_as_a_user_of_its_own_without_privilege() {
    let (scratch, image) = (Scratch::new(), image());
    let disk = copy(&scratch, &image);
    let package = packages::make(&scratch, "0.1.0", "0.1.0").join("tollgate_0.1.0_amd64.deb");
    let guest = Guest::new(&scratch, "6.1", "bpf").with(&package, "/root/1.deb");
    let output = guest.run(&disk, &["/bin/bash", "-c", SCRIPT]);
    println!("{output}");
    said(&output, &["enrolled: 0", "approved: 0", "report: 0", "daemon: root"]);
    said(&output, &["agent: tollgate-fleet, capabilities 0000000000000000", "another user: 2"]);
    said(&output, &["killed: it runs again", "status: runs", "status: has ended"]);
}
