//! Why there is no connection.

use std::io;
use std::time::Duration;

use model::{ErrorCode, NameError};
use net::{AddressError, TlsError};

/// Connecting failed.
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
    /// Nobody answers at the address.
    #[error(
        "cannot connect to {address}: {cause}\nhint: start a node there with `telpher serve`, or correct the address"
    )]
    Io {
        /// Where.
        address: String,
        /// Why.
        cause: io::Error,
    },
    /// The address answers, but not with a WELCOME.
    #[error("no answer from {address} within {timeout:?}\nhint: is that a Telpher node or server?")]
    Timeout {
        /// Where.
        address: String,
        /// How long was waited.
        timeout: Duration,
    },
    /// The peer said no.
    #[error("{address} refused the connection: {code}: {message}\nhint: {}", refusal_hint(*.code))]
    Refused {
        /// Where.
        address: String,
        /// What kind of refusal.
        code: ErrorCode,
        /// What the peer said.
        message: String,
    },
    /// The peer does not speak the protocol.
    #[error(
        "{address} does not speak the Telpher protocol: {cause}\nhint: the native door listens on port 7400 by default"
    )]
    Protocol {
        /// Where.
        address: String,
        /// What was wrong with its answer.
        cause: String,
    },
    /// A node answers, and the address names no agent.
    #[error(
        "{address} is a node, and the address names no agent\nhint: append the name, like {address}#acme/demo/echo"
    )]
    NameMissing {
        /// Where.
        address: String,
    },
    /// An RPC server answers, and the address names an agent.
    #[error(
        "{address} is an RPC server: it has methods and no agents\nhint: leave away what follows the #"
    )]
    NameUnused {
        /// Where.
        address: String,
    },
    /// This transport is not offered here.
    #[error("{address} cannot be used here\nhint: {hint}")]
    Unsupported {
        /// Where.
        address: String,
        /// What can.
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
        ErrorCode::Unsupported => "the versions have nothing in common; upgrade the older side",
        ErrorCode::Unavailable => "it is shutting down or full; try again later",
        ErrorCode::InvalidArgument => "correct the name that the client introduces itself with",
        _ => "the log of the other side says more",
    }
}

impl ConnectError {
    /// The message without its hint, to be part of another message.
    pub(crate) fn brief(&self) -> String {
        let text = self.to_string();
        match text.split_once("\nhint: ") {
            Some((brief, _)) => brief.to_owned(),
            None => text,
        }
    }
}
