//! TCP sockets, always without Nagle's delay.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};

use crate::eager::EagerSource;
use crate::file_bytes::{self, FileBytes};
use crate::stream::{Following, Sink, Stream};

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

/// Writes buffers of which the next write is the continuation: the system may send both as one
/// packet.
fn write_before_more(socket: &TcpStream, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
    #[cfg(target_os = "linux")]
    let flags = libc::MSG_NOSIGNAL | libc::MSG_MORE;
    #[cfg(not(target_os = "linux"))]
    let flags = 0;
    let reference = socket2::SockRef::from(socket);
    socket.try_io(Interest::WRITABLE, || {
        reference.send_vectored_with_flags(buffers, flags)
    })
}

/// Sends bytes of a file without copying them; `None` where that is not possible.
#[cfg(target_os = "linux")]
fn send_file(socket: &TcpStream, file: &dyn FileBytes, at: usize) -> Option<io::Result<usize>> {
    use rustix::io::Errno;

    let (descriptor, place) = file.descriptor()?;
    let mut offset = place + at as u64;
    let size = file.size() - at;
    let sent = socket.try_io(Interest::WRITABLE, || {
        Ok(rustix::fs::sendfile(
            socket,
            descriptor,
            Some(&mut offset),
            size,
        )?)
    });
    let is_unsupported = |error: &io::Error| {
        let number = error.raw_os_error();
        [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP]
            .iter()
            .any(|errno| Some(errno.raw_os_error()) == number)
    };
    match sent {
        Ok(0) => Some(Err(file_bytes::unreadable(
            io::ErrorKind::UnexpectedEof.into(),
        ))),
        Err(error) if is_unsupported(&error) => None,
        Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
            Some(Err(file_bytes::unreadable(error)))
        }
        sent => Some(sent),
    }
}

#[cfg(not(target_os = "linux"))]
fn send_file(_: &TcpStream, _: &dyn FileBytes, _: usize) -> Option<io::Result<usize>> {
    None
}

struct TcpSink(OwnedWriteHalf);

impl Sink for TcpSink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn try_write_vectored(
        &self,
        buffers: &[IoSlice<'_>],
        following: Following,
    ) -> io::Result<usize> {
        match following {
            Following::Nothing => self.0.try_write_vectored(buffers),
            Following::More => write_before_more(self.0.as_ref(), buffers),
        }
    }

    fn try_send_file(&self, file: &dyn FileBytes, at: usize) -> io::Result<usize> {
        match send_file(self.0.as_ref(), file, at) {
            Some(sent) => sent,
            None => file_bytes::copy(file, at, |bytes| self.0.try_write(bytes)),
        }
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
