//! `Acceptor`: accepts connections on TCP, TLS, Unix and in-process listeners.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use net::{Address, Stream};
use tokio::net::{TcpListener, UnixListener};

/// A listening socket.
pub(crate) enum Acceptor {
    Tcp(TcpListener, Option<Arc<rustls::ServerConfig>>),
    Unix(UnixListener),
    Inproc(net::inproc::Listener),
}

/// Pause after a failed accept, for example without free file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

impl Acceptor {
    /// Listens at `address`. Also returns the address for clients, in which port 0 is replaced by
    /// the actual port.
    pub(crate) async fn open(
        address: &Address,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> io::Result<(Self, Address)> {
        match address {
            Address::Tcp { host, port } => {
                let (listener, port) = listen_tcp(host, *port).await?;
                let host = host.clone();
                Ok((Self::Tcp(listener, None), Address::Tcp { host, port }))
            }
            Address::Tls { host, port } => {
                let config = tls.ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidInput, "tls:// needs a certificate")
                })?;
                let (listener, port) = listen_tcp(host, *port).await?;
                let host = host.clone();
                Ok((
                    Self::Tcp(listener, Some(config)),
                    Address::Tls { host, port },
                ))
            }
            Address::Unix { path } => {
                let listener = net::listen_unix(path).await?;
                Ok((Self::Unix(listener), address.clone()))
            }
            Address::Inproc { name } => {
                let listener = net::inproc::listen(name)?;
                Ok((Self::Inproc(listener), address.clone()))
            }
        }
    }

    /// Waits for the next connection.
    pub(crate) async fn accept(&self) -> Stream {
        loop {
            let accepted = match self {
                Self::Tcp(listener, tls) => match listener.accept().await {
                    Ok((socket, _)) => match tls {
                        Some(config) => net::split_tls_accepted(socket, config.clone()),
                        None => net::split_tcp(socket),
                    },
                    Err(error) => Err(error),
                },
                Self::Unix(listener) => match listener.accept().await {
                    Ok((socket, _)) => net::split_unix(socket),
                    Err(error) => Err(error),
                },
                Self::Inproc(listener) => return listener.accept().await,
            };
            match accepted {
                Ok(stream) => return stream,
                Err(error) if is_connection_error(&error) => {}
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// True if only this connection failed because its client was gone.
fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::Interrupted
    )
}

async fn listen_tcp(host: &str, port: u16) -> io::Result<(TcpListener, u16)> {
    let address = match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    let listener = net::listen_tcp(&address).await?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Removes the socket file of a listener when it is dropped.
pub(crate) struct SocketFile(Option<std::path::PathBuf>);

impl SocketFile {
    pub(crate) fn of(address: &Address) -> Self {
        match address {
            Address::Unix { path } => Self(Some(path.clone())),
            _ => Self(None),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Another process may have removed the file.
            let _ = std::fs::remove_file(path);
        }
    }
}
