//! Whether a service may answer clients that connect to it.
//!
//! A service to which nobody connected while it learnt has not learnt to answer. It would hang when it is enforced.

use std::collections::BTreeSet;

use crate::{
    grants::Grants,
    listening::{Listening, Protocol},
};

/// The addresses on which a service listens without permission to take connections, for example `tcp 8085` or
/// `/run/web/socket`. UDP is left out, because a domain that waits for packets was seen to read them.
#[must_use]
pub fn unanswered(grants: &Grants, listening: &Listening) -> Vec<String> {
    let may = |classes: &[&str], permission: &str| !grants.types(classes, &[permission]).is_empty();
    // Some wait in accept before anybody connects, so they are seen to need `accept` but not `read`.
    let tcp = ["tcp_socket"];
    let answers_ports = may(&tcp, "accept") && may(&tcp, "read");
    let answers_sockets = may(&["unix_stream_socket", "unix_dgram_socket"], "accept");
    let ports = listening.ports.iter().filter(|port| port.protocol == Protocol::Tcp && !answers_ports);
    let sockets: BTreeSet<String> = listening.sockets.iter().map(|path| path.display().to_string()).collect();
    ports.map(ToString::to_string).chain(sockets.into_iter().filter(|_| !answers_sockets)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listening::Port;

    fn grants(class: &str, permissions: &[&str]) -> Grants {
        let permissions = permissions.iter().map(|name| (*name).to_owned()).collect();
        Grants([(("web.t".to_owned(), class.to_owned()), permissions)].into())
    }

    fn listening() -> Listening {
        let port = |protocol, number| Port { protocol, number };
        Listening {
            ports: [port(Protocol::Tcp, 8085), port(Protocol::Udp, 53)].into(),
            sockets: ["/run/web/socket".into()].into(),
        }
    }

    #[test]
    fn tells_what_nobody_has_connected_to() {
        assert_eq!(unanswered(&Grants::default(), &listening()), ["tcp 8085", "/run/web/socket"]);
        let waits = grants("tcp_socket", &["accept", "listen"]);
        assert_eq!(unanswered(&waits, &listening()), ["tcp 8085", "/run/web/socket"], "it has never read");
        assert_eq!(unanswered(&grants("tcp_socket", &["accept", "read"]), &listening()), ["/run/web/socket"]);
        assert_eq!(unanswered(&grants("unix_stream_socket", &["accept"]), &listening()), ["tcp 8085"]);
    }

    #[test]
    fn tells_nothing_of_a_service_that_listens_on_nothing() {
        assert!(unanswered(&Grants::default(), &Listening::default()).is_empty());
    }
}
