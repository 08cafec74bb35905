//! Detection of another Telpher node on the checked ports.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use client::{Client, ConnectError};
use config::{Config, HostPort};
use serde_json::Value;

/// Time limit of each request to a port.
const LIMIT: Duration = Duration::from_millis(500);

/// Maximum bytes of an answer.
const ANSWER_SIZE_MAX: u64 = 16 << 10;

/// A node that answers on one of the ports.
#[derive(Debug)]
pub(super) struct Neighbour {
    address: String,
    /// The version, if the HTTP listener has answered.
    version: Option<String>,
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a Telpher node runs at {}", self.address)?;
        match &self.version {
            Some(version) => write!(f, " (version {version})"),
            None => Ok(()),
        }
    }
}

impl Neighbour {
    /// Queries the HTTP port and the native port for a node.
    pub(super) fn find(config: &Config) -> Option<Self> {
        let by_http = config.http.listen.as_ref().and_then(ask_http);
        by_http.or_else(|| config.native.listen.as_ref().and_then(ask_native))
    }
}

/// Sends `GET /version`.
fn ask_http(listen: &HostPort) -> Option<Neighbour> {
    let address = resolve(listen)?;
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).ok()?;
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    stream.set_write_timeout(Some(LIMIT)).ok()?;
    let head = format!("GET /version HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // A server that sends more is not a node.
    let _ = stream.take(ANSWER_SIZE_MAX).read_to_end(&mut answer);
    let answer = String::from_utf8(answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let document: Value = serde_json::from_str(body).ok()?;
    (document["software"] == "telpher").then(|| Neighbour {
        address: format!("http://{address}"),
        version: document["version"].as_str().map(str::to_owned),
    })
}

/// Connects with the native protocol. A node that requires a token is recognized too.
fn ask_native(listen: &HostPort) -> Option<Neighbour> {
    let address = format!("tcp://{}", resolve(listen)?);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().ok()?;
    let connecting =
        async { tokio::time::timeout(LIMIT, Client::builder().connect(&address)).await };
    match runtime.block_on(connecting).ok()? {
        Ok(_) | Err(ConnectError::Refused { .. }) => Some(Neighbour {
            address,
            version: None,
        }),
        Err(_) => None,
    }
}

/// Resolves the address; `None` for port 0.
fn resolve(listen: &HostPort) -> Option<SocketAddr> {
    let mut addresses = listen.to_string().to_socket_addrs().ok()?;
    addresses.find(|address| address.port() != 0)
}
