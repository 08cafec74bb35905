//! Detection of the transport by the first bytes that a client sends.
//!
//! ```text
//! "GET"        a request of HTTP/1.1 that asks for a WebSocket
//! other bytes  HTTP/2, or nothing that is served
//! ```

use std::future::poll_fn;

use platform::Counter;
use tokio::time::Instant;
use tokio::time::error::Elapsed;

use super::io::Io;
use super::{Door, client, websocket};

/// The first bytes of an HTTP/1.1 request for a WebSocket. HTTP/2 begins with another word.
const GET: &[u8] = b"GET";

/// The reason why a connection is not served.
#[derive(Debug, thiserror::Error)]
pub(super) enum Strange {
    #[error("no HTTP request arrived in time")]
    Late(#[from] Elapsed),
    #[error("not HTTP/2: {0}")]
    Http2(#[from] h2::Error),
    #[error("not HTTP/1.1: {0}")]
    Http1(#[from] hyper::Error),
    #[error("the request was answered with {0}")]
    Refused(http::StatusCode),
}

/// Serves a connection to its end.
pub(super) async fn serve(door: &Door, stream: net::Stream) {
    let remote = stream.peer.clone();
    let mut io = Io::new(stream);
    let by = Instant::now() + door.options.negotiation_timeout;
    let begins = poll_fn(|cx| {
        let beginning = io.poll_peek(cx, GET.len());
        beginning.map(|bytes| (!bytes.is_empty()).then(|| bytes.starts_with(GET)))
    });
    let served = match tokio::time::timeout_at(by, begins).await {
        // The client only checks whether the port is open.
        Ok(None) => Ok(()),
        Ok(Some(true)) => websocket::serve(door, io, &remote, by).await,
        Ok(Some(false)) => client::serve(door, io, &remote, by).await,
        Err(late) => Err(late.into()),
    };
    if let Err(reason) = served {
        door.node.counters().count(Counter::ProtocolErrors);
        door.refusals.log(&remote, &reason);
    }
}
