//! Unix sockets: the fastest way between processes of one machine.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};

use crate::eager::EagerSource;
use crate::stream::{Sink, Stream};

/// Connects to the socket at `path`.
pub async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path).await
}

/// Listens at `path`. The socket file of a dead process is replaced. If a process answers there, or
/// the file is not a socket, the call fails.
pub async fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
            let is_refused = matches!(
                UnixStream::connect(path).await,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused
            );
            if !(is_socket && is_refused) {
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
        source: Box::new(EagerSource::<_, UnixStream>::new(read)),
        sink: Arc::new(UnixSink(write)),
        peer,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stale_socket_is_replaced_other_files_are_not() {
        let dir = std::env::temp_dir().join(format!("telpher-unix-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("socket");
        let first = listen_unix(&path).await.unwrap();
        let taken = listen_unix(&path).await.unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        drop(listen_unix(&path).await.unwrap());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert!(listen_unix(&path).await.is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
