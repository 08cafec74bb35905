//! Accepts connections of one listener within the budget of sockets that all listeners share.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use net::{SocketBudget, SocketPermit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Pause after `accept` failed, out of descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener logs failures at most this often.
const WARN_INTERVAL: Duration = Duration::from_secs(10);

/// Time in which a refused client may read why.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Refused sockets of one listener that may be open while their clients read why. Further ones are
/// closed at once. They come out of the descriptors that the budget leaves free.
const REFUSALS_MAX: usize = 8;

/// A socket that listens.
pub(crate) trait Listen {
    /// A connection.
    type Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection.
    async fn next(&self) -> io::Result<Self::Socket>;
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

/// Accepts connections of one listener.
pub(crate) struct Accepting<L> {
    listener: L,
    budget: SocketBudget,
    /// Bytes that tell a client that the budget is used up; empty closes the connection only.
    refusal: Vec<u8>,
    refusals: Arc<Semaphore>,
    warned: Option<Instant>,
}

impl<L: Listen> Accepting<L> {
    /// Accepts from `listener` within `budget`. A client that is refused reads `refusal`.
    pub(crate) fn new(listener: L, budget: SocketBudget, refusal: Vec<u8>) -> Self {
        Self {
            listener,
            budget,
            refusal,
            refusals: Arc::new(Semaphore::new(REFUSALS_MAX)),
            warned: None,
        }
    }

    /// The next connection, which holds a permit. Errors and refusals are handled here.
    pub(crate) async fn next(&mut self) -> (L::Socket, SocketPermit) {
        loop {
            match self.listener.next().await {
                Ok(socket) => match self.budget.admit() {
                    Some(permit) => return (socket, permit),
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

    fn refuse(&mut self, socket: L::Socket) {
        if self.is_warning_due() {
            tracing::warn!(
                limit = self.budget.limit(),
                refused = self.budget.refused(),
                "connection refused: every file descriptor for sockets is in use; \
                 raise the limit of open files (`ulimit -n`, LimitNOFILE=)"
            );
        }
        if self.refusal.is_empty() {
            return;
        }
        if let Ok(place) = self.refusals.clone().try_acquire_owned() {
            let refusal = self.refusal.clone();
            tokio::spawn(async move {
                let _place = place;
                // A client that does not read, or has gone, needs no answer.
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
