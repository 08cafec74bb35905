//! `Socket` and `Reader`: a blocking socket that can also be polled.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use net::Address;
use rustix::net::RecvFlags;

use super::spin::Spinner;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket timeout that differs by less than this is not changed, because setting it is a system
/// call.
const SLACK: Duration = Duration::from_millis(1);

impl Socket {
    pub(crate) fn connect(address: &Address, timeout: Duration) -> io::Result<Self> {
        match address {
            Address::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, timeout) {
                        Ok(socket) => {
                            socket.set_nodelay(true)?;
                            return Ok(Self::Tcp(socket));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Address::Unix { path } => UnixStream::connect(path).map(Self::Unix),
            Address::Tls { .. } | Address::Inproc { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Reads available bytes without waiting; `WouldBlock` when there are none.
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (count, _) = rustix::net::recv(self.as_fd(), buffer, RecvFlags::DONTWAIT)?;
        Ok(count)
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.set_read_timeout(timeout),
            Self::Unix(socket) => socket.set_read_timeout(timeout),
        }
    }

    pub(crate) fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.set_write_timeout(Some(timeout)),
            Self::Unix(socket) => socket.set_write_timeout(Some(timeout)),
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.write_all(bytes),
            Self::Unix(socket) => socket.write_all(bytes),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Unix(socket) => socket.read(buffer),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

/// Reads with a deadline; spins before sleeping.
#[derive(Debug)]
pub(crate) struct Reader {
    spinner: Spinner,
    /// Current timeout of the socket.
    timeout: Option<Duration>,
}

impl Reader {
    pub(crate) fn new(spinner: Spinner) -> Self {
        Self {
            spinner,
            timeout: None,
        }
    }

    /// Reads bytes that arrive before `deadline`; `TimedOut` when none do.
    pub(crate) fn read(
        &mut self,
        socket: &mut Socket,
        buffer: &mut [u8],
        deadline: Instant,
    ) -> io::Result<usize> {
        let start = now();
        let look = self.spinner.time();
        if !look.is_zero() {
            let until = (start + look).min(deadline);
            loop {
                match socket.read_now(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    outcome => {
                        self.spinner.learn(true);
                        return outcome;
                    }
                }
                if now() >= until {
                    break;
                }
                std::hint::spin_loop();
            }
            self.spinner.learn(false);
        }
        self.sleep(socket, buffer, deadline, start)
    }

    fn sleep(
        &mut self,
        socket: &mut Socket,
        buffer: &mut [u8],
        deadline: Instant,
        mut at: Instant,
    ) -> io::Result<usize> {
        loop {
            let remaining = deadline.saturating_duration_since(at);
            if remaining.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if self
                .timeout
                .is_none_or(|timeout| timeout.abs_diff(remaining) > SLACK)
            {
                socket.set_read_timeout(Some(remaining))?;
                self.timeout = Some(remaining);
            }
            match socket.read(buffer) {
                Err(error) if is_timeout(&error) => at = now(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => at = now(),
                outcome => return outcome,
            }
        }
    }
}

/// True for a timeout, which is either error kind depending on the platform.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Returns the time for a client without a runtime.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no runtime whose clock could be used, and no simulation without one"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
