//! Routes of a network namespace: read, and brought to what they should be.

use std::{collections::BTreeMap, io};

use super::{
    super::{
        links::Device,
        netlink::{self, CREATE, EXCLUSIVE, REPLACE, Socket},
        prefix::Family,
    },
    Plan, Routing,
    route::{self, Route},
};

/// Length of struct fib_rule_hdr, with which messages about rules begin.
const RULE: usize = 12;
/// Attributes of a rule (FRA_...).
const SUPPRESS_PREFIXLEN: u16 = 14;
const TABLE: u16 = 15;

/// The routing of the socket's namespace, which has these devices.
pub fn read(socket: &Socket, devices: Vec<Device>) -> io::Result<Routing> {
    let (mut routes, mut suppressed) = (Vec::new(), BTreeMap::new());
    for family in Family::ALL {
        let mut fixed = [0; route::FIXED];
        fixed[0] = family.number();
        match socket.list(libc::RTM_GETROUTE, &fixed, |request| request) {
            Ok(found) => routes.extend(found.iter().filter_map(Route::read)),
            // This kernel has no IPv6.
            Err(cause) if matches!(cause.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EAFNOSUPPORT)) => continue,
            Err(cause) => return Err(cause),
        }
        for (table, length) in rules(socket, family)? {
            let longest = suppressed.entry((family, table)).or_default();
            *longest = length.max(*longest);
        }
    }
    Ok(Routing { routes, devices, suppressed })
}

/// The rules that leave out routes with short prefixes: table, and the longest length that they leave out.
fn rules(socket: &Socket, family: Family) -> io::Result<Vec<(u32, u8)>> {
    let mut fixed = [0; RULE];
    fixed[0] = family.number();
    let found = match socket.list(libc::RTM_GETRULE, &fixed, |request| request) {
        // This kernel has no rules.
        Err(cause) if matches!(cause.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EAFNOSUPPORT)) => Vec::new(),
        found => found?,
    };
    let rule = |message: &netlink::Message| {
        let (fixed, attributes) = message.split(RULE)?;
        let table = netlink::number(attributes, TABLE).unwrap_or(u32::from(fixed[4]));
        let length = netlink::number(attributes, SUPPRESS_PREFIXLEN).filter(|length| *length != u32::MAX)?;
        Some((table, u8::try_from(length).ok()?))
    };
    Ok(found.iter().filter_map(rule).collect())
}

/// Does what a plan says. Returns what could not be done, in words.
pub fn apply(socket: &Socket, plan: &Plan) -> Vec<String> {
    let ask = |route: &Route, kind, flags, what: &str| {
        let gone = |cause: &io::Error| matches!(cause.raw_os_error(), Some(libc::ESRCH | libc::ENODEV | libc::EEXIST));
        let cause = socket.ask(route.request(kind, flags)).err().filter(|cause| !gone(cause))?;
        Some(format!("the route to {} cannot be {what}: {cause}", route.prefix))
    };
    let removed = plan.remove.iter().filter_map(|route| ask(route, libc::RTM_DELROUTE, 0, "removed"));
    let added = plan.add.iter().filter_map(|route| ask(route, libc::RTM_NEWROUTE, CREATE | EXCLUSIVE, "added"));
    let changed = plan.change.iter().filter_map(|route| ask(route, libc::RTM_NEWROUTE, REPLACE, "given another MTU"));
    removed.chain(added).chain(changed).collect()
}
