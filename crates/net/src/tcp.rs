//! TCP sockets, always without Nagle's delay.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};

use crate::eager::EagerSource;
use crate::stream::{Sink, Stream};

/// Connects to the first address of `host` that answers.
pub async fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((host, port)).await
}

/// Listens on `HOST:PORT`, with a backlog for ten thousand agents that connect at once.
pub async fn listen_tcp(address: &str) -> io::Result<TcpListener> {
    let address = tokio::net::lookup_host(address)
        .await?
        .next()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the host has no address"))?;
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    TcpListener::from_std(socket.into())
}

/// Splits a connected socket.
pub fn split_tcp(socket: TcpStream) -> io::Result<Stream> {
    socket.set_nodelay(true)?;
    let peer = socket.peer_addr()?.to_string();
    let (read, write) = socket.into_split();
    Ok(Stream {
        source: Box::new(EagerSource::<_, TcpStream>::new(read)),
        sink: Arc::new(TcpSink(write)),
        peer,
    })
}

/// Sends a pending acknowledgement now, where the system supports it.
pub(crate) fn acknowledge(socket: &TcpStream) {
    #[cfg(target_os = "linux")]
    // Fails only on a socket that is not connected any more.
    let _ = socket2::SockRef::from(socket).set_tcp_quickack(true);
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

struct TcpSink(OwnedWriteHalf);

impl Sink for TcpSink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_ref().poll_write_ready(cx)
    }

    fn acknowledge(&self) {
        acknowledge(self.0.as_ref());
    }

    fn finish(&self) {
        // A socket that is not connected any more has finished already.
        let _ = socket2::SockRef::from(self.0.as_ref()).shutdown(std::net::Shutdown::Write);
    }

    fn close(&self) {
        // A socket that is not connected any more is closed already.
        let _ = socket2::SockRef::from(self.0.as_ref()).shutdown(std::net::Shutdown::Both);
    }
}
