//! Contexts in sealed labels: which number stands for which SID, and what time it is.

use std::{
    os::fd::{AsRawFd, BorrowedFd},
    time::{SystemTime, UNIX_EPOCH},
};

use libbpf_rs::{ErrorKind, MapCore, MapFlags};
use nix::time::{ClockId, clock_gettime};
use tollgate_abi::{
    bytes_of,
    enforcer::{SECINITSID_NETMSG, TG_SID_MACHINE, tg_identifier_key, tg_sock, tg_socket},
};
use tollgate_netlabel::sealed::Key;
use tracing::warn;

use super::{Enforcer, EnforcerError, map_error};
use crate::contexts::{self, Sid};

/// Why a context of another machine is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unlearned {
    /// Its identifier is another one, or another context has it.
    #[error("it says {0}, which has another number, or whose number another context has here")]
    Other(String),
    /// No more contexts of packets are taken.
    #[error("there is no room for more contexts of packets until the machine restarts")]
    Full,
    /// The policy in force does not permit it.
    #[error(transparent)]
    Refused(#[from] EnforcerError),
}

impl Enforcer {
    /// Lets sealed labels name the context of a SID, by each key.
    pub(super) fn identify(&self, sid: Sid, context: &str) -> Result<(), EnforcerError> {
        let mut own = None;
        for key in self.networks.keys.iter() {
            let key = Key { number: key.number, secret: key.secret };
            let identifier = self.put_identifier(sid, context, key.identifier(context))?;
            // Labels are sealed by the first key.
            own.get_or_insert(identifier);
        }
        self.generation.set_identifier(sid, own.unwrap_or_default());
        Ok(())
    }

    /// Enters an identifier. Returns it, or 0 if another context has it.
    fn put_identifier(&self, sid: Sid, context: &str, identifier: u32) -> Result<u32, EnforcerError> {
        let key = tg_identifier_key { generation: self.generation.number, identifier };
        let taken = match self.maps.identified.update(bytes_of(&key), &sid.to_ne_bytes(), MapFlags::NO_EXIST) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                return Err(map_error("give a context an identifier")(cause));
            }
            new => new.is_err() && !self.is_identified_as(&key, context)?,
        };
        if taken {
            warn!(context, "{context} has no sealed label: another context has the same identifier");
        }
        Ok(if taken { 0 } else { identifier })
    }

    /// Whether an identifier stands for this context already.
    fn is_identified_as(&self, key: &tg_identifier_key, context: &str) -> Result<bool, EnforcerError> {
        let found = self.maps.identified.lookup(bytes_of(key), MapFlags::ANY);
        let found = found.map_err(map_error("find an identifier"))?.unwrap_or_default();
        let sid = found.try_into().map_or(0, Sid::from_ne_bytes);
        Ok(self.contexts.has(sid) && self.contexts.text(sid) == context)
    }

    /// Whether an identifier stands for a context.
    pub(crate) fn has_identifier(&self, identifier: u32) -> bool {
        self.identified(identifier).is_some()
    }

    fn identified(&self, identifier: u32) -> Option<Sid> {
        let key = tg_identifier_key { generation: self.generation.number, identifier };
        let found = self.maps.identified.lookup(bytes_of(&key), MapFlags::ANY).ok()??;
        found.try_into().ok().map(Sid::from_ne_bytes).filter(|sid| self.contexts.has(*sid))
    }

    /// The context that a key gives an identifier, for a machine that asks.
    pub(crate) fn context_of(&mut self, identifier: u32, key: &Key) -> Option<String> {
        self.learn();
        let text = self.contexts.text(self.identified(identifier)?);
        (key.identifier(text) == identifier).then(|| text.to_owned())
    }

    /// Takes the context that another machine says an identifier stands for.
    pub(crate) fn learn_identified(&mut self, identifier: u32, text: &str) -> Result<(), Unlearned> {
        let other = || Unlearned::Other(text.to_owned());
        let keys = self.networks.keys.iter().map(|key| Key { number: key.number, secret: key.secret });
        if !keys.into_iter().any(|key| key.identifier(text) == identifier) {
            return Err(other());
        }
        if self.contexts.sid(text).is_none() && (self.is_half_full() || !self.state.take_packet_label()) {
            return Err(Unlearned::Full);
        }
        let context = self.generation.context(text).map_err(EnforcerError::from)?;
        // One context has one identifier.
        if self.generation.text(&context) != text {
            return Err(other());
        }
        self.intern(text)?;
        self.has_identifier(identifier).then_some(()).ok_or_else(other)
    }

    /// Labels the socket by which other machines are asked. Its packets need a label that all machines know before they
    /// ask: the domain that is the machine's under this policy, at the lowest level that packets have.
    pub(crate) fn label_asking(&mut self, socket: BorrowedFd<'_>) -> Result<(), EnforcerError> {
        let machine = contexts::machine(&self.generation.policy).unwrap_or_default();
        let ranged = contexts::with_range(&machine, self.contexts.text(SECINITSID_NETMSG));
        let sid = self.intern(&ranged).or_else(|_| self.intern(&machine)).unwrap_or(TG_SID_MACHINE);
        let class = (1..).zip(tollgate_abi::CLASSES).find(|(_, class)| class.name == "udp_socket");
        let class = class.map_or(0, |(number, _)| number);
        let kept = tg_sock { label: tg_socket { sid, class, peer: 0, labelled: 0 }, used: 0, unconfined: 0 };
        let put = self.maps.sockets.update(&socket.as_raw_fd().to_ne_bytes(), bytes_of(&kept), MapFlags::ANY);
        put.map_err(map_error("label the socket of questions"))
    }

    /// Sets the clock by which programs judge the age of sealed labels. It goes on by itself, and somebody may set the
    /// machine's.
    pub fn set_clock(&self) {
        let day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if let Ok(boot) = clock_gettime(ClockId::CLOCK_BOOTTIME) {
            let boot = std::time::Duration::from(boot);
            self.state.set_clock(u64::try_from(day.saturating_sub(boot).as_nanos()).unwrap_or_default());
        }
    }
}
