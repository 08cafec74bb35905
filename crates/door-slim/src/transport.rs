//! Detection of the transport by the first bytes that a client sends.
//!
//! ```text
//! "GET"        a request of HTTP/1.1 that asks for a WebSocket
//! other bytes  HTTP/2, or nothing that is served
//! ```

use std::future::poll_fn;

use platform::Counter;
use tokio::time::Instant;

use super::io::Io;
use super::listener::Door;
use super::{client, websocket};

/// The first bytes of an HTTP/1.1 request for a WebSocket. HTTP/2 begins with another word.
const GET: &[u8] = b"GET";

impl Door {
    /// Serves one connection to its end.
    pub async fn serve(&self, stream: net::Stream) {
        let remote = stream.peer.clone();
        let mut io = Io::new(stream);
        let by = Instant::now() + self.options.negotiation_timeout;
        let begins = poll_fn(|cx| {
            let beginning = io.poll_peek(cx, GET.len());
            beginning.map(|bytes| (!bytes.is_empty()).then(|| bytes.starts_with(GET)))
        });
        let served = match tokio::time::timeout_at(by, begins).await {
            // The client only checks whether the port is open.
            Ok(None) => Ok(()),
            Ok(Some(true)) => websocket::serve(self, io, &remote, by).await,
            Ok(Some(false)) => client::serve(self, io, &remote, by).await,
            Err(late) => Err(late.into()),
        };
        if let Err(reason) = served {
            self.node.counters().count(Counter::ProtocolErrors);
            self.refusals.log(&remote, &reason);
        }
    }
}
