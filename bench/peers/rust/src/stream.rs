//! TCP with its delay switched off and Unix sockets, for transports that take either.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use contract::{Address, Failure, Outcome};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A bound listener.
pub enum Listener {
    /// Of TCP connections.
    Tcp(TcpListener),
    /// Of connections to a path.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens at `address`. Call it within a runtime.
    pub async fn bind(address: &Address) -> Outcome<Listener> {
        let bound = match address {
            Address::Tcp(address) => TcpListener::bind(address).await.map(Listener::Tcp),
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
    pub fn address(&self) -> Outcome<Address> {
        match self {
            Listener::Tcp(listener) => listener
                .local_addr()
                .map(Address::Tcp)
                .map_err(|error| Failure::run(format!("no local address: {error}"), "try again")),
            Listener::Unix(_, path) => Ok(Address::Unix(path.clone())),
        }
    }

    /// The files to remove when the program ends.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Listener::Tcp(_) => Vec::new(),
            Listener::Unix(_, path) => vec![path.clone()],
        }
    }
}

/// Connects over TCP.
pub async fn tcp(address: SocketAddr) -> Outcome<TcpStream> {
    let stream = TcpStream::connect(address).await.and_then(undelayed);
    connected(Address::Tcp(address), stream)
}

/// Connects to a Unix socket.
pub async fn unix(path: &Path) -> Outcome<UnixStream> {
    connected(Address::Unix(path.into()), UnixStream::connect(path).await)
}

/// Switches the delay of small segments off.
pub fn undelayed(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn connected<S>(address: Address, stream: io::Result<S>) -> Outcome<S> {
    stream.map_err(|error| {
        Failure::run(
            format!("cannot connect to {address}: {error}"),
            "start the server first and use the address it prints after READY",
        )
    })
}
