//! The connection to an etcd: to one member at a time, and to the next one when it does not answer.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use etcd_client::{Client, ConnectOptions, Error, TlsOptions};
use tollgate_fleet::store::StoreError;

/// How long a request may take. etcd itself gives up after 7 seconds.
const TIMEOUT: Duration = Duration::from_secs(8);
/// How long it may take to connect: a member that was away has all its nodes' handshakes to do.
const CONNECT: Duration = Duration::from_secs(20);
/// How often a connection over which nothing is said is tried, and how long the answer may take.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));
/// Older ones of these series forget at a restart who may do what (etcd issue 14355).
const OLDEST: [[u64; 3]; 2] = [[3, 4, 21], [3, 5, 5]];

// The numbers of gRPC.
const INVALID: i32 = 3;
const DENIED: i32 = 7;
const EXHAUSTED: i32 = 8;
const TOO_LONG: i32 = 11;
const UNAUTHENTICATED: i32 = 16;

/// A connection to one of several members.
pub(super) struct Link {
    members: Vec<String>,
    tls: Option<TlsOptions>,
    /// Which member it is connected to.
    at: Cell<usize>,
    client: RefCell<Option<Client>>,
}

/// Why a request was not answered.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// etcd has refused it, or the connection has failed.
    Error(Error),
    /// It took too long.
    Late(Duration),
    /// The member is too old to be trusted with permissions.
    Old(String),
}

impl Link {
    /// A connection that begins with one of the members. It is made when it is needed.
    pub(super) fn new(members: Vec<String>, tls: Option<TlsOptions>, first: usize) -> Self {
        let at = Cell::new(first % members.len().max(1));
        Self { members, tls, at, client: RefCell::new(None) }
    }

    /// Asks the member to which it is connected, and the others after it if that one cannot answer.
    pub(super) async fn ask<T>(
        &self,
        what: &str,
        question: impl AsyncFnMut(&mut Client) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        self.try_ask(question).await.map_err(|error| error.in_store(what))
    }

    /// The same, with the reason why there is no answer.
    pub(super) async fn try_ask<T>(
        &self,
        mut question: impl AsyncFnMut(&mut Client) -> Result<T, Error>,
    ) -> Result<T, Unanswered> {
        let mut tried = 1;
        loop {
            match self.ask_once(&mut question).await {
                Err(error) if !error.is_final() && tried < self.members.len() => tried += 1,
                answer => return answer,
            }
        }
    }

    /// Asks one member.
    pub(super) async fn ask_once<T>(
        &self,
        question: &mut impl AsyncFnMut(&mut Client) -> Result<T, Error>,
    ) -> Result<T, Unanswered> {
        let answer = match self.client().await {
            Ok(mut client) => within(TIMEOUT, question(&mut client)).await,
            Err(error) => Err(error),
        };
        // Another connection to a member that is late makes it later.
        let is_alone = |error: &Unanswered| self.members.len() == 1 && matches!(error, Unanswered::Late(_));
        if answer.as_ref().is_err_and(|error| !error.is_final() && !is_alone(error)) {
            self.leave();
        }
        answer
    }

    /// Gives the connection up: the next request goes to the next member.
    pub(super) fn leave(&self) {
        self.client.take();
        self.at.set((self.at.get() + 1) % self.members.len().max(1));
    }

    async fn client(&self) -> Result<Client, Unanswered> {
        if let Some(client) = &*self.client.borrow() {
            return Ok(client.clone());
        }
        let (interval, timeout) = KEEP_ALIVE;
        let mut options = ConnectOptions::new()
            .with_connect_timeout(CONNECT)
            .with_keep_alive(interval, timeout)
            .with_keep_alive_while_idle(true)
            // A member that is cut off from the others ends its watches.
            .with_require_leader(true);
        if let Some(tls) = &self.tls {
            options = options.with_tls(tls.clone());
        }
        let member: Vec<&str> = self.members.get(self.at.get()).map(String::as_str).into_iter().collect();
        let mut client = within(CONNECT, Client::connect(member, Some(options))).await?;
        let status = within(CONNECT, client.status()).await?;
        if is_old(status.version()) {
            return Err(Unanswered::Old(status.version().to_owned()));
        }
        self.client.replace(Some(client.clone()));
        Ok(client)
    }
}

async fn within<T>(time: Duration, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Unanswered> {
    match tokio::time::timeout(time, answer).await {
        Ok(answer) => answer.map_err(Unanswered::Error),
        Err(_) => Err(Unanswered::Late(time)),
    }
}

/// Whether it is older than the first of its series that remembers permissions.
fn is_old(version: &str) -> bool {
    let mut numbers = version.split(['.', '-', '+']).map(|number| number.parse().unwrap_or(0));
    let version = [(); 3].map(|()| numbers.next().unwrap_or(0));
    version < OLDEST[0] || (version[..2] == OLDEST[1][..2] && version < OLDEST[1])
}

impl Unanswered {
    /// Whether another member would say the same.
    fn is_final(&self) -> bool {
        let known = [INVALID, DENIED, EXHAUSTED, TOO_LONG, UNAUTHENTICATED];
        self.code().is_some_and(|code| known.contains(&code))
    }

    /// Whether the answer was longer than a client takes.
    pub(super) fn is_too_long(&self) -> bool {
        self.code() == Some(TOO_LONG)
    }

    /// The same, as a store says it.
    pub(super) fn in_store(&self, what: &str) -> StoreError {
        StoreError::Failed { what: format!("{what} in etcd"), cause: format!("{self}; {}", self.remedy()) }
    }

    fn code(&self) -> Option<i32> {
        match self {
            Self::Error(Error::GRpcStatus(status)) => Some(status.code().into()),
            _ => None,
        }
    }

    fn remedy(&self) -> &'static str {
        match (self, self.code()) {
            (Self::Old(_), _) => "install 3.4.21, 3.5.5 or newer: older ones forget at a restart who may do what",
            (_, Some(DENIED | UNAUTHENTICATED)) => {
                "the certificate's common name must be a user of etcd whose role may do this"
            }
            (_, Some(EXHAUSTED)) => "compact and defragment its database, or give it more room",
            _ => "look whether its members run and are reached, and whether the certificates are of one authority",
        }
    }
}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error(Error::GRpcStatus(status)) => f.write_str(status.message()),
            Self::Error(error) => error.fmt(f),
            Self::Late(time) => write!(f, "no answer within {} seconds", time.as_secs()),
            Self::Old(version) => write!(f, "it is etcd {version}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_an_etcd_that_forgets_permissions() {
        for old in ["3.3.27", "3.4.20", "3.5.0", "3.5.4", "2.3.8", ""] {
            assert!(is_old(old), "{old}");
        }
        for new in ["3.4.21", "3.4.23", "3.5.5", "3.6.0-rc.1", "4.0.0", "3.5.16+git"] {
            assert!(!is_old(new), "{new}");
        }
    }
}
