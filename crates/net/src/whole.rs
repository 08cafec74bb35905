//! Reading and writing of whole buffers, for callers that have nothing else to do meanwhile.

use std::future::poll_fn;
use std::io;

use crate::{Sink, Source};

/// Reads once, waiting for bytes. Returns 0 if the peer will send no more.
pub async fn read(source: &mut dyn Source, buffer: &mut [u8]) -> io::Result<usize> {
    poll_fn(|cx| source.poll_read(cx, buffer)).await
}

/// Reads until the buffer is full. An earlier end is an error.
pub async fn read_exact(source: &mut dyn Source, buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read(source, &mut buffer[filled..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            size => filled += size,
        }
    }
    Ok(())
}

/// Writes all bytes, those included that the sink buffers itself.
pub async fn write_all(sink: &dyn Sink, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match sink.try_write(bytes) {
            Ok(size) => bytes = &bytes[size..],
            Err(error) => wait_after(sink, error).await?,
        }
    }
    while let Err(error) = sink.try_flush() {
        wait_after(sink, error).await?;
    }
    Ok(())
}

/// Waits until a blocked write can be retried; other errors are returned.
async fn wait_after(sink: &dyn Sink, error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock => poll_fn(|cx| sink.poll_writable(cx)).await,
        _ => Err(error),
    }
}
