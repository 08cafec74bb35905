//! Clients that several simulations share.

pub(crate) mod http;
pub(crate) mod kafka;

use std::future::poll_fn;
use std::io::ErrorKind;

use net::Sink;

/// Writes all bytes; `None` if the connection is lost.
async fn write(sink: &dyn Sink, mut bytes: &[u8]) -> Option<()> {
    while !bytes.is_empty() {
        match sink.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                poll_fn(|cx| sink.poll_writable(cx)).await.ok()?;
            }
            Err(_) => return None,
        }
    }
    Some(())
}
