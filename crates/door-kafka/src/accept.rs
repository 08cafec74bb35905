//! Accepts Kafka connections and records their local address, at which the client will be told to
//! find the broker.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use door::{Accepting, WhenFull};
use net::{SocketBudget, SocketPermit, Stream};
use tokio::net::{TcpListener, TcpStream};

/// An accepted connection.
#[derive(Debug)]
pub struct Arrived {
    /// The byte stream.
    pub stream: Stream,
    /// The local address that the client connected to.
    pub local: SocketAddr,
}

/// Makes an [`Arrived`] from an accepted socket, on the runtime that will serve it.
pub type Acceptor = Box<dyn FnOnce() -> io::Result<Arrived> + Send>;

/// Accepts connections forever, with TLS if it is configured, and passes each to `serve`.
/// Connections beyond `budget` are closed: the protocol has no message that a broker sends first.
pub async fn accept(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    budget: SocketBudget,
    serve: impl Fn(Acceptor),
) {
    let mut accepting = Accepting::new(listener, budget, WhenFull::Refuse(Vec::new()));
    loop {
        let (socket, permit) = accepting.next().await;
        match socket.into_std() {
            Ok(socket) => {
                let tls = tls.clone();
                serve(Box::new(move || split(socket, tls, permit)));
            }
            Err(error) => tracing::warn!(%error, "cannot serve a Kafka connection"),
        }
    }
}

fn split(
    socket: std::net::TcpStream,
    tls: Option<Arc<rustls::ServerConfig>>,
    permit: SocketPermit,
) -> io::Result<Arrived> {
    let local = socket.local_addr()?;
    let socket = TcpStream::from_std(socket)?;
    let stream = match tls {
        Some(config) => net::split_tls_accepted(socket, config)?,
        None => net::split_tcp(socket)?,
    };
    let stream = stream.with_permit(permit);
    Ok(Arrived { stream, local })
}
