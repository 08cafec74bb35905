//! Options of a client, with its window and its deadline.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use net::Address;
use wire::Window;

use crate::state::clock::Timeout;

/// Opens a byte stream to an address, in place of a socket: see [`Builder::connector`](crate::Builder::connector).
pub type Connector = dyn Fn(&Address) -> Connecting + Send + Sync;

/// Future that a [`Connector`] returns.
pub type Connecting = Pin<Box<dyn Future<Output = std::io::Result<net::Stream>> + Send>>;

/// Validated options of a [`Builder`](crate::Builder).
pub(crate) struct Options {
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) window: Window,
    pub(crate) requests_size_max: usize,
    pub(crate) in_flight_max: usize,
    pub(crate) deadline: Timeout,
    pub(crate) pause_min: Duration,
    pub(crate) pause_max: Duration,
    pub(crate) seed: Option<u64>,
    pub(crate) connector: Option<Arc<Connector>>,
}
