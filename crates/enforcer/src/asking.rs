//! Contexts of other machines: a sealed label names one that no process here has had, and the machine that has sent it is
//! asked which one it is (docs/network.md). Until it has answered, packets with the label are dropped.

mod port;
mod table;

use std::{
    fs::File,
    io::{self, Read},
    net::SocketAddr,
    num::NonZeroU16,
    os::fd::BorrowedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use tollgate_abi::enforcer::tg_event;
use tollgate_audit::endpoints::Endpoints;
use tollgate_client::network;
use tollgate_netlabel::{
    question::{Message, Question},
    sealed::window,
};
use tracing::{info, warn};

use self::{
    port::{Came, Port},
    table::{Asked, Due, Table},
};
use crate::{datapath::Networks, enforcer::Enforcer};

/// How long it waits before it tries again to bind a port that somebody else has.
const BIND_INTERVAL: Duration = Duration::from_secs(1);
/// How many messages are taken at a time.
const BATCH: usize = 64;

/// Questions to other machines, and answers to theirs.
#[derive(Debug, Default)]
pub struct Asking {
    /// The networks that the port was opened for, or that it could not be opened for.
    networks: Option<Arc<Networks>>,
    port: Option<Port>,
    /// Why it is not open, and when it is tried again.
    closed: Option<(String, Instant)>,
    table: Table,
    counts: network::Contexts,
}

impl Asking {
    /// What wakes the daemon.
    #[must_use]
    pub fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.port.as_ref()?.wake()
    }

    /// When there is something to do.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.table.next()
    }

    /// What was asked and answered; `None`: no port is configured.
    #[must_use]
    pub fn report(&self) -> Option<network::Contexts> {
        let port = self.networks.as_ref()?.config.port()?;
        let closed = self.closed.as_ref().map(|(why, _)| why.clone());
        Some(network::Contexts { port: port.get(), closed, ..self.counts.clone() })
    }

    /// Takes the news of a packet whose label names an unknown context.
    pub fn met(&mut self, event: &tg_event, enforcer: &Enforcer) {
        let (Some(_), Some(address)) = (&self.port, Endpoints::new(event).saddr) else { return };
        let asked = Asked { node: event.device as u16, identifier: event.source };
        let seal = enforcer.networks().config.seal.as_ref();
        let Some(own) = seal.map(|seal| seal.node).filter(|own| *own != asked.node) else { return };
        let now = Instant::now();
        if enforcer.has_identifier(asked.identifier) || !self.table.may_ask(asked, now) {
            return;
        }
        let Ok(nonce) = random() else { return warn!("no random numbers: nobody is asked for contexts") };
        let generation = enforcer.generation().policy_number();
        let (from, to, identifier) = (own, asked.node, asked.identifier);
        self.table.ask(Question { nonce, generation, window: window(port::now()), identifier, from, to }, address, now);
    }

    /// Does what is due.
    pub fn follow(&mut self, enforcer: &mut Enforcer) {
        self.open(enforcer);
        let Some(port) = self.port.take() else { return };
        for _ in 0..BATCH {
            let Some(came) = port.next() else { break };
            self.came(&port, came, enforcer);
        }
        self.send(&port, enforcer.networks());
        self.port = Some(port);
    }

    /// Opens the port that the networks in force name, or closes it.
    fn open(&mut self, enforcer: &mut Enforcer) {
        let networks = enforcer.shared_networks();
        let is_same = self.networks.as_ref().is_some_and(|own| Arc::ptr_eq(own, networks));
        let is_resting = self.closed.as_ref().is_some_and(|(_, again)| Instant::now() < *again);
        if is_same && (self.closed.is_none() || is_resting) {
            return;
        }
        let networks = Arc::clone(networks);
        // Their keys and zones are those of the thread.
        self.port = None;
        self.table.forget();
        let opened = networks.config.port().map(|port| Self::opened(port, &networks, enforcer)).transpose();
        match opened {
            Ok(port) => (self.port, self.closed) = (port, None),
            Err(cause) => {
                let number = networks.config.port().map_or(0, NonZeroU16::get);
                if !is_same {
                    warn!(%cause, "contexts of other machines stay unknown: cannot use UDP port {number}: {cause}");
                }
                self.closed = Some((cause.to_string(), Instant::now() + BIND_INTERVAL));
            }
        }
        self.networks = Some(networks);
    }

    fn opened(port: NonZeroU16, networks: &Arc<Networks>, enforcer: &mut Enforcer) -> io::Result<Port> {
        let port = Port::open(port, Arc::clone(networks))?;
        enforcer.label_asking(port.socket()).map_err(io::Error::other)?;
        Ok(port)
    }

    fn came(&mut self, port: &Port, came: Came, enforcer: &mut Enforcer) {
        let Came { message, key, from } = came;
        match message {
            Message::Question(question) => {
                let is_ours = question.generation == enforcer.generation().policy_number();
                let context = if is_ours { enforcer.context_of(question.identifier, &key) } else { None };
                // If it cannot be sent, it will be asked again.
                let _ = port.send(&Message::Answer(question, context), &key, from);
                self.counts.answered += 1;
            }
            Message::Answer(question, context) if self.table.answered(&question) => {
                self.learn(&question, context, enforcer);
            }
            Message::Answer(..) => {}
        }
    }

    /// Takes an answer, which may say what is not true: a machine that has the key can be in somebody else's hands.
    fn learn(&mut self, question: &Question, context: Option<String>, enforcer: &mut Enforcer) {
        let Question { to: node, identifier, .. } = *question;
        let learned = match &context {
            Some(context) => {
                // Also if it is no context: looking at it may take the number of a level.
                self.table.learned(node);
                enforcer.learn_identified(identifier, context).map_err(|cause| cause.to_string())
            }
            None => Err("it does not know it, or has another policy in force".to_owned()),
        };
        match learned {
            Ok(()) => {
                self.counts.learned += 1;
                info!(node, context, "a context of node {node}: {}", context.as_deref().unwrap_or_default());
            }
            Err(cause) => {
                self.table.rest(Asked { node, identifier }, Instant::now());
                self.counts.refused += 1;
                warn!(node, %cause, "packets with a context of node {node} are dropped: {cause}");
            }
        }
    }

    fn send(&mut self, port: &Port, networks: &Networks) {
        let (due, unanswered) = self.table.due(Instant::now());
        let (keys, number) = (port::keys(networks), networks.config.port().map_or(0, NonZeroU16::get));
        for Due { question, address, sent } in due {
            self.counts.asked += u64::from(sent == 0);
            // The other machine may not have the first key any more, or not seal by it yet.
            let Some(key) = keys.get(sent % keys.len().max(1)) else { return };
            if let Err(cause) = port.send(&Message::Question(question), key, SocketAddr::new(address, number)) {
                let node = question.to;
                warn!(node, %cause, "node {node} cannot be asked for a context at {address}: {cause}");
            }
        }
        for Asked { node, .. } in unanswered {
            self.counts.unanswered += 1;
            warn!(node, "node {node} does not say which context its packets have: look whether its daemon runs");
        }
    }
}

fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
