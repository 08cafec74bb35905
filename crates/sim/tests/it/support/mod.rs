//! Clients that several simulations share.

pub(crate) mod http;
pub(crate) mod kafka;

use std::future::poll_fn;
use std::io::ErrorKind;
use std::ops::Range;

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

/// Returns the seeds of a long run: those of `TELPHER_SIM_SEEDS`, or else these.
pub(crate) fn seeds(otherwise: Range<u64>) -> Range<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "which seeds to run is no matter of configuration"
    )]
    let Ok(range) = std::env::var("TELPHER_SIM_SEEDS") else {
        return otherwise;
    };
    let (start, end) = range.split_once("..").unwrap();
    start.parse().unwrap()..end.parse().unwrap()
}
