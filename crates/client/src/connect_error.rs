//! `ConnectError`: errors of connecting to a node or a server.

use std::io;
use std::time::Duration;

use model::{ErrorCode, NameError};
use net::{AddressError, TlsError};

/// Error of a failed connection attempt.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The text is not an address.
    #[error(
        "{0}\nhint: write tcp://HOST:PORT, unix:///PATH or inproc://NAME, and #NAME for an agent"
    )]
    Address(#[from] AddressError),
    /// The agent's name is not valid.
    #[error("{0}\nhint: a name is agent, org/namespace/agent or org/namespace/agent/instance")]
    Name(#[from] NameError),
    /// The certificate authorities cannot be used.
    #[error("{0}\nhint: give the PEM file of the certificate, or of the authority that signed it")]
    Tls(#[from] TlsError),
    /// The TCP, TLS or Unix connection cannot be made.
    #[error(
        "cannot connect to {address}: {cause}\nhint: start a node there with `telpher serve`, or correct the address"
    )]
    Io {
        /// Address as given.
        address: String,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The peer accepted the connection and sent no WELCOME frame in time.
    #[error(
        "no answer from {address} within {timeout:?}\nhint: check that a Telpher node or server listens there"
    )]
    Timeout {
        /// Address as given.
        address: String,
        /// Time that the client waited.
        timeout: Duration,
    },
    /// The peer refused the connection.
    #[error("{address} refused the connection: {code}: {message}\nhint: {}", refusal_hint(*.code))]
    Refused {
        /// Address as given.
        address: String,
        /// Error code of the refusal.
        code: ErrorCode,
        /// Message from the peer.
        message: String,
    },
    /// The peer does not speak the protocol.
    #[error(
        "{address} does not speak the Telpher protocol: {cause}\nhint: the native listener uses port 7400 by default"
    )]
    Protocol {
        /// Address as given.
        address: String,
        /// Violation of the protocol.
        cause: String,
    },
    /// The peer is a node, and the address names no agent.
    #[error(
        "{address} is a node, and the address names no agent\nhint: append the name, like {address}#acme/demo/echo"
    )]
    NameMissing {
        /// Address as given.
        address: String,
    },
    /// The peer is an RPC server, and the address names an agent.
    #[error(
        "{address} is an RPC server: it has methods and no agents\nhint: remove the # and the name after it"
    )]
    NameUnused {
        /// Address as given.
        address: String,
    },
    /// This platform or build does not support the transport.
    #[error("{address} is not supported here\nhint: {hint}")]
    Unsupported {
        /// Address as given.
        address: String,
        /// Transports that can be used.
        hint: &'static str,
    },
}

fn refusal_hint(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthenticated => "give a valid token; `telpher token add` makes one",
        ErrorCode::Denied => {
            "connect under a name that the token may use, or bind it to this one: \
             `telpher token bind TOKEN --for PATTERN`"
        }
        ErrorCode::Unsupported => "the peers share no protocol version; upgrade the older one",
        ErrorCode::Unavailable => "the peer is shutting down or full; retry later",
        ErrorCode::InvalidArgument => "correct the client's name",
        _ => "the peer's log has details",
    }
}

impl ConnectError {
    /// Returns the message without its hint, for use inside another message.
    pub(crate) fn brief(&self) -> String {
        let text = self.to_string();
        match text.split_once("\nhint: ") {
            Some((brief, _)) => brief.to_owned(),
            None => text,
        }
    }
}
