//! `ListeningServer`: a server that accepts connections.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use net::{Address, AddressError, Stream, TlsError};
use tokio::task::{JoinHandle, JoinSet};

use super::Server;
use super::accept::{Acceptor, SocketFile};
use super::connection::Service;

/// Error of [`Server::listen`].
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The text is not an address.
    #[error("{0}\nhint: write tcp://HOST:PORT, tls://HOST:PORT, unix:///PATH or inproc://NAME")]
    Address(#[from] AddressError),
    /// The certificate or its key cannot be used.
    #[error("{0}\nhint: `tls` takes the PEM files of a certificate chain and of its key")]
    Tls(#[from] TlsError),
    /// The address is in use or not permitted.
    #[error("cannot listen at {address}: {cause}\nhint: {}", listen_hint(.cause))]
    Io {
        /// Address as given.
        address: String,
        /// Error of the operating system.
        cause: io::Error,
    },
}

fn listen_hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::AddrInUse => "another process listens there; port 0 takes any free port",
        io::ErrorKind::PermissionDenied => {
            "choose a port above 1023, or a directory that you may write to"
        }
        io::ErrorKind::InvalidInput => "give `tls` a certificate and its key",
        _ => "use an address of this machine, such as tcp://127.0.0.1:0",
    }
}

/// A listening server. Dropping it closes its socket and all its connections at once.
#[derive(Debug)]
pub struct ListeningServer {
    address: String,
    accepting: JoinHandle<()>,
    service: Arc<Service>,
}

impl Server {
    /// Listens at `address` until the returned handle is dropped. Port 0 takes any free port.
    pub async fn listen(&self, address: &str) -> Result<ListeningServer, ListenError> {
        let address: Address = address.parse()?;
        let tls = match &self.options.tls {
            Some((certificate, key)) => Some(net::load_server_config(certificate, key)?),
            None => None,
        };
        let opened = Acceptor::open(&address, tls).await;
        let (acceptor, address) = opened.map_err(|cause| ListenError::Io {
            address: address.to_string(),
            cause,
        })?;
        let service = Service::new(self.handlers.clone(), self.options.clone());
        let file = SocketFile::of(&address);
        let accepting = tokio::spawn(serve(service.clone(), acceptor, file));
        Ok(ListeningServer {
            address: address.to_string(),
            accepting,
            service,
        })
    }

    /// Serves one connection that was accepted by other code, until it ends.
    pub async fn serve_stream(&self, stream: Stream) {
        let service = Service::new(self.handlers.clone(), self.options.clone());
        service.serve(stream).await;
    }
}

impl ListeningServer {
    /// Returns the address for clients, with the actual port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Shuts down gracefully: accepts no new connections, sends GOAWAY to the clients and waits up
    /// to `time` for the calls in flight.
    pub async fn shutdown(mut self, time: Duration) {
        self.service.send_goaway(time);
        // The task can also end by being aborted, which dropping this handle does.
        let _ = (&mut self.accepting).await;
    }

    /// Serves until the accepting task fails.
    pub async fn run(mut self) {
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for ListeningServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(service: Arc<Service>, acceptor: Acceptor, file: SocketFile) {
    // Dropping this set closes all connections.
    let mut connections = JoinSet::new();
    let mut drain = service.drain.subscribe();
    let mut sent_away = pin!(async move { drain.wait_for(Option::is_some).await.is_ok() });
    while let Some(stream) = next(&acceptor, sent_away.as_mut(), &mut connections).await {
        connections.spawn(service.clone().serve(stream));
    }
    drop((acceptor, file));
    while connections.join_next().await.is_some() {}
}

/// Waits for the next connection; `None` when `stop` is ready first. Removes ended connections
/// meanwhile.
async fn next(
    acceptor: &Acceptor,
    mut stop: Pin<&mut impl Future<Output = bool>>,
    connections: &mut JoinSet<()>,
) -> Option<Stream> {
    let mut accept = pin!(acceptor.accept());
    std::future::poll_fn(|cx| {
        while let Poll::Ready(Some(_)) = connections.poll_join_next(cx) {}
        if stop.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        accept.as_mut().poll(cx).map(Some)
    })
    .await
}
