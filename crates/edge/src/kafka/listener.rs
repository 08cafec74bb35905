//! Accepts connections, and notes where each of them arrived: that is where the client will be told
//! to find the broker.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::Stream;
use tokio::net::{TcpListener, TcpStream};

/// A connection that was accepted.
#[derive(Debug)]
pub struct Arrived {
    /// Its bytes.
    pub stream: Stream,
    /// The address that the client reached.
    pub local: SocketAddr,
}

/// Makes it of an accepted socket, on the runtime that will serve it.
pub type Acceptor = Box<dyn FnOnce() -> io::Result<Arrived> + Send>;

/// After an accept failed (out of descriptors, say), how long to wait before the next one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections for ever, inside TLS when there is a configuration, and hands each to
/// whoever serves it.
pub async fn accept(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    serve: impl Fn(Acceptor),
) {
    loop {
        let accepted = listener.accept().await;
        match accepted.and_then(|(socket, _)| socket.into_std()) {
            Ok(socket) => {
                let tls = tls.clone();
                serve(Box::new(move || split(socket, tls)));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a Kafka connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn split(
    socket: std::net::TcpStream,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> io::Result<Arrived> {
    let local = socket.local_addr()?;
    let socket = TcpStream::from_std(socket)?;
    let stream = match tls {
        Some(config) => net::split_tls_accepted(socket, config)?,
        None => net::split_tcp(socket)?,
    };
    Ok(Arrived { stream, local })
}
