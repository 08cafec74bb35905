//! Stream sockets, TCP with its delay switched off and Unix, behind one type.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use contract::{Address, Failure, Outcome, SILENCE_SECONDS_MAX};

/// A connected socket. Reads and writes are plain system calls, so a file does for both kinds.
pub(crate) struct Socket(File);

impl Socket {
    /// Connects; reads and writes on the socket then wait for [`SILENCE_SECONDS_MAX`] at most.
    pub(crate) fn connect(address: &Address) -> Outcome<Socket> {
        let silence = Some(Duration::from_secs(SILENCE_SECONDS_MAX));
        let connected: io::Result<OwnedFd> = match address {
            Address::Tcp(address) => TcpStream::connect(address).and_then(|stream| {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(silence)?;
                Ok(stream.into())
            }),
            Address::Unix(path) => UnixStream::connect(path).and_then(|stream| {
                stream.set_read_timeout(silence)?;
                Ok(stream.into())
            }),
        };
        match connected {
            Ok(socket) => Ok(Socket(socket.into())),
            Err(error) => Err(Failure::run(
                format!("cannot connect to {address}: {error}"),
                "start the server first and use the address it prints after READY",
            )),
        }
    }

    /// Reads what there is, waiting if there is nothing. 0 means that the peer has gone.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(into)
    }

    /// Writes everything, waiting for room.
    pub(crate) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }

    /// Writes what there is room for, which may be nothing, without waiting.
    pub(crate) fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        #[expect(unsafe_code, reason = "std cannot write once without waiting")]
        // SAFETY: the pointer and the length are those of one slice, which outlives the call.
        let written = unsafe { libc::send(self.fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
        if written >= 0 {
            return Ok(written as usize);
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            error => Err(error),
        }
    }

    /// The number of the descriptor, for polling.
    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A socket that accepts connections.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens at `address`.
    pub(crate) fn bind(address: &Address) -> Outcome<Listener> {
        let bound = match address {
            Address::Tcp(address) => TcpListener::bind(address).map(Listener::Tcp),
            Address::Unix(path) => {
                UnixListener::bind(path).map(|listener| Listener::Unix(listener, path.clone()))
            }
        };
        bound.map_err(|error| {
            Failure::run(
                format!("cannot listen at {address}: {error}"),
                "take port 0, or a socket path that does not exist yet",
            )
        })
    }

    /// The address with the port that the system chose.
    pub(crate) fn address(&self) -> Outcome<Address> {
        match self {
            Listener::Tcp(listener) => listener
                .local_addr()
                .map(Address::Tcp)
                .map_err(|error| Failure::run(format!("no local address: {error}"), "try again")),
            Listener::Unix(_, path) => Ok(Address::Unix(path.clone())),
        }
    }

    /// The files to remove when the program ends.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match self {
            Listener::Tcp(_) => Vec::new(),
            Listener::Unix(_, path) => vec![path.clone()],
        }
    }

    /// Waits for the next connection.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        let socket: OwnedFd = match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                stream.into()
            }
            Listener::Unix(listener, _) => listener.accept()?.0.into(),
        };
        Ok(Socket(socket.into()))
    }

    /// The number of the descriptor, for polling.
    pub(crate) fn fd(&self) -> RawFd {
        match self {
            Listener::Tcp(listener) => listener.as_raw_fd(),
            Listener::Unix(listener, _) => listener.as_raw_fd(),
        }
    }
}
