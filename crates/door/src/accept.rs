//! Accepts connections of one listener within the budget of sockets that all listeners share.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use net::{SocketBudget, SocketPermit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

/// The interval at which a listener that waits for a free socket checks the budget.
const ROOM_INTERVAL: Duration = Duration::from_millis(250);

/// Pause after `accept` failed, out of descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener logs failures at most this often.
const WARN_INTERVAL: Duration = Duration::from_secs(10);

/// The time that a refused client may take to read the reason.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Refused sockets of one listener that may stay open while their clients read the reason. Further
/// ones are closed at once. They use the descriptors that the budget leaves free.
const REFUSALS_MAX: usize = 8;

/// A listening socket.
pub trait Listen {
    /// The type of a connection.
    type Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection.
    fn next(&self) -> impl Future<Output = io::Result<Self::Socket>> + Send;
}

impl Listen for TcpListener {
    type Socket = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        self.accept().await.map(|(socket, _)| socket)
    }
}

impl Listen for UnixListener {
    type Socket = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(socket, _)| socket)
    }
}

/// Behaviour of a listener while the budget is used up.
#[derive(Clone, Debug)]
pub enum WhenFull {
    /// Accept the connection, write these bytes and close it; without bytes, close it at once.
    Refuse(Vec<u8>),
    /// Accept nothing: connections wait in the system's queue.
    Wait,
}

/// Accepts connections of one listener.
pub struct Accepting<L> {
    listener: L,
    budget: SocketBudget,
    when_full: WhenFull,
    refusals: Arc<Semaphore>,
    warned: Option<Instant>,
}

impl<L: Listen> Accepting<L> {
    /// Accepts from `listener` within `budget`.
    pub fn new(listener: L, budget: SocketBudget, when_full: WhenFull) -> Self {
        Self {
            listener,
            budget,
            when_full,
            refusals: Arc::new(Semaphore::new(REFUSALS_MAX)),
            warned: None,
        }
    }

    /// Returns the next connection, which holds a permit. Errors and refusals are handled here.
    pub async fn next(&mut self) -> (L::Socket, SocketPermit) {
        loop {
            let reserved = match self.when_full {
                WhenFull::Refuse(_) => None,
                WhenFull::Wait => Some(self.room().await),
            };
            match self.listener.next().await {
                Ok(socket) => match reserved.or_else(|| self.budget.admit()) {
                    Some(permit) => {
                        if permit.is_of_reserve() {
                            self.warn_of_used_up("only health checks are answered");
                        }
                        return (socket, permit);
                    }
                    None => self.refuse(socket),
                },
                Err(error) => {
                    if self.is_warning_due() {
                        tracing::warn!(%error, "cannot accept connections");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Returns the next connection until `open` ends. Connections that the system has accepted by
    /// then are still returned, as far as the budget has room for them.
    pub async fn next_while(
        &mut self,
        open: &mut watch::Receiver<()>,
    ) -> Option<(L::Socket, SocketPermit)> {
        tokio::select! {
            biased;
            accepted = self.next() => Some(accepted),
            _ = open.changed() => None,
        }
    }

    /// Waits until the budget has room for another connection.
    async fn room(&mut self) -> SocketPermit {
        loop {
            // A denied permit counts as a refused client, so the budget is checked first.
            let permit = self.budget.has_room().then(|| self.budget.admit());
            if let Some(permit) = permit.flatten() {
                return permit;
            }
            self.warn_of_used_up("connections wait until one is free");
            tokio::time::sleep(ROOM_INTERVAL).await;
        }
    }

    fn warn_of_used_up(&mut self, effect: &str) {
        if self.is_warning_due() {
            tracing::warn!(
                limit = self.budget.limit(),
                refused = self.budget.refused(),
                "{effect}: every file descriptor for sockets is in use; \
                 raise the limit of open files (`ulimit -n`, LimitNOFILE=)"
            );
        }
    }

    fn refuse(&mut self, socket: L::Socket) {
        self.warn_of_used_up("connection refused");
        let refusal = match &self.when_full {
            WhenFull::Refuse(refusal) if !refusal.is_empty() => refusal.clone(),
            _ => return,
        };
        if let Ok(place) = self.refusals.clone().try_acquire_owned() {
            tokio::spawn(async move {
                let _place = place;
                // A client that does not read, or has disconnected, needs no answer.
                let _ = tokio::time::timeout(REFUSAL_TIMEOUT, tell(socket, &refusal)).await;
            });
        }
    }

    fn is_warning_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.warned.is_none_or(|at| now - at >= WARN_INTERVAL);
        if is_due {
            self.warned = Some(now);
        }
        is_due
    }
}

/// Writes the refusal and reads until the client closes: closing a socket with unread bytes would
/// reset the connection, and the client might not see the refusal.
async fn tell(mut socket: impl AsyncRead + AsyncWrite + Unpin, refusal: &[u8]) -> io::Result<()> {
    socket.write_all(refusal).await?;
    socket.shutdown().await?;
    let mut rest = [0; 1024];
    while socket.read(&mut rest).await? > 0 {}
    Ok(())
}
