//! Connections that speak neither of the transports.

use tokio::time::error::Elapsed;

/// The reason why a connection is not served.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error("no HTTP request arrived in time")]
    Late(#[from] Elapsed),
    #[error("not HTTP/2: {0}")]
    Http2(#[from] h2::Error),
    #[error("not HTTP/1.1: {0}")]
    Http1(#[from] hyper::Error),
    #[error("the request was answered with {0}")]
    Refused(http::StatusCode),
}
