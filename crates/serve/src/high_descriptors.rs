//! Moves listeners to the highest file descriptors of the process.
//!
//! When a process is killed, the system closes its descriptors from the highest to the lowest.
//! SLIM's library reconnects at the moment its connection ends. It retries for ever while
//! connections are refused, but gives up for good if an accepted connection fails. Therefore a SLIM
//! listener must close before the connections, so it is moved to a descriptor above theirs.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, UnixListener};

/// The lowest descriptor of a moved listener. Connections have lower descriptors unless there are
/// more of them. A descriptor table of this size takes half a MiB of kernel memory.
const LOWEST: u64 = 1 << 16;

/// Number of descriptors below the limit of the process that are reserved for listeners.
const RESERVED: u64 = 8;

/// Moves a TCP listener above the descriptors of all connections.
pub(super) fn lift_tcp(listener: TcpListener, descriptors: u64) -> io::Result<TcpListener> {
    let lifted = lift(listener.into_std()?.into(), descriptors)?;
    TcpListener::from_std(lifted.into())
}

/// Moves a Unix listener above the descriptors of all connections.
pub(super) fn lift_unix(listener: UnixListener, descriptors: u64) -> io::Result<UnixListener> {
    let lifted = lift(listener.into_std()?.into(), descriptors)?;
    UnixListener::from_std(lifted.into())
}

/// Moves a descriptor to at least `descriptors`, as far as the limit of the process allows.
fn lift(descriptor: OwnedFd, descriptors: u64) -> io::Result<OwnedFd> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let wanted = descriptors.max(LOWEST);
    let lowest = wanted.min(limit.saturating_sub(RESERVED));
    let lowest = i32::try_from(lowest).unwrap_or(i32::MAX);
    Ok(fcntl_dupfd_cloexec(descriptor.as_fd(), lowest)?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[tokio::test]
    async fn lifted_listener_has_a_high_descriptor_and_still_accepts() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let before = listener.as_raw_fd();
        let lifted = lift_tcp(listener, 0).unwrap();
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let lowest = LOWEST.min(limit - RESERVED) as i32;
        assert!(
            lifted.as_raw_fd() >= lowest && before < lowest,
            "{lifted:?}"
        );
        assert_eq!(lifted.local_addr().unwrap(), address);
        let connecting = tokio::net::TcpStream::connect(address);
        let (connected, accepted) = tokio::join!(connecting, lifted.accept());
        connected.unwrap();
        accepted.unwrap();
    }

    #[test]
    fn a_listener_is_lifted_no_higher_than_the_limit_of_the_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        lift(listener.into(), u64::MAX).unwrap();
    }
}
