//! Unix sockets: the fastest way between processes of one machine.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use crate::tcp::poll_read;
use crate::{Sink, Source, Stream};

/// Connects to the socket at `path`.
pub async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path).await
}

/// Listens at `path`. A socket file that a dead process left is replaced; one that answers is
/// in use, and anything that is not a socket is left alone.
pub async fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let stale = matches!(
                UnixStream::connect(path).await,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused
            );
            if !stale {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        outcome => outcome,
    }
}

/// Splits a connected socket.
pub fn split_unix(socket: UnixStream) -> io::Result<Stream> {
    let peer = match socket.peer_cred() {
        Ok(credentials) => format!("unix:pid={}", credentials.pid().unwrap_or(0)),
        Err(_) => "unix".to_owned(),
    };
    let (read, write) = socket.into_split();
    Ok(Stream {
        source: Box::new(UnixSource(read)),
        sink: Arc::new(UnixSink(write)),
        peer,
    })
}

struct UnixSource(OwnedReadHalf);

impl Source for UnixSource {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        poll_read(Pin::new(&mut self.0), cx, buffer)
    }
}

struct UnixSink(OwnedWriteHalf);

impl Sink for UnixSink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_ref().poll_write_ready(cx)
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
