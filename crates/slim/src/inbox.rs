//! `Inbox`: splits a gRPC stream into messages, for any division into chunks.
//!
//! ```text
//! | compressed 1 | size 4, big endian | message |
//! ```
//!
//! A message that lies completely in a chunk shares the chunk's memory. A message above the size
//! limit is reported once and skipped as it arrives, so the stream continues after it.

use bytes::{Buf, Bytes, BytesMut};

const HEAD_SIZE: usize = 5;

/// An item of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// A message.
    Message(Bytes),
    /// Size in bytes of a message above the limit, which is skipped.
    Oversize(u32),
}

/// Error: a compressed message, although no compression was negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message is compressed, but no compression was negotiated")]
pub struct Compressed;

/// Messages of one stream.
#[derive(Debug)]
pub struct Inbox {
    size_max: u32,
    chunk: Bytes,
    /// Start of a message, with its head, that arrived in several chunks.
    partial: BytesMut,
    /// Remaining bytes of a message above the limit.
    to_skip: u32,
}

impl Inbox {
    /// Creates an inbox for messages of up to `size_max` bytes.
    pub fn new(size_max: u32) -> Self {
        Self {
            size_max,
            chunk: Bytes::new(),
            partial: BytesMut::new(),
            to_skip: 0,
        }
    }

    /// Adds a chunk. [`pull`](Self::pull) must have returned `None` before.
    pub fn feed(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the piece before has been read");
        self.chunk = chunk;
    }

    /// Returns the next item; `None` if more bytes are needed.
    pub fn pull(&mut self) -> Result<Option<Item>, Compressed> {
        let skipped = (self.to_skip as usize).min(self.chunk.len());
        self.chunk.advance(skipped);
        self.to_skip -= skipped as u32;
        if self.to_skip > 0 {
            return Ok(None);
        }
        let Some(size) = self.head()? else {
            return Ok(None);
        };
        if size > self.size_max {
            self.drop_head();
            self.to_skip = size;
            return Ok(Some(Item::Oversize(size)));
        }
        Ok(self.take(size as usize).map(Item::Message))
    }

    /// Returns the size of the next message once its head has arrived.
    fn head(&mut self) -> Result<Option<u32>, Compressed> {
        if !self.partial.is_empty() {
            self.collect(HEAD_SIZE);
        } else if self.chunk.len() < HEAD_SIZE {
            self.collect(HEAD_SIZE);
            return Ok(None);
        }
        let head = match self.partial.is_empty() {
            true => &self.chunk[..],
            false => &self.partial[..],
        };
        match head {
            [0, a, b, c, d, ..] => Ok(Some(u32::from_be_bytes([*a, *b, *c, *d]))),
            [_, _, _, _, _, ..] => Err(Compressed),
            _ => Ok(None),
        }
    }

    /// Removes the head of the next message.
    fn drop_head(&mut self) {
        match self.partial.is_empty() {
            true => self.chunk.advance(HEAD_SIZE),
            false => self.partial.clear(),
        }
    }

    /// Returns the message after the head once it is complete.
    fn take(&mut self, size: usize) -> Option<Bytes> {
        let whole = HEAD_SIZE + size;
        if self.partial.is_empty() && self.chunk.len() >= whole {
            let mut message = self.chunk.split_to(whole);
            message.advance(HEAD_SIZE);
            return Some(message);
        }
        self.collect(whole);
        if self.partial.len() < whole {
            return None;
        }
        let mut message = std::mem::take(&mut self.partial).freeze();
        message.advance(HEAD_SIZE);
        Some(message)
    }

    /// Moves bytes from the chunk to `partial`, up to `whole` bytes in total. Memory grows with the
    /// received bytes, not with the announced size.
    fn collect(&mut self, whole: usize) {
        let missing = whole.saturating_sub(self.partial.len());
        let piece = self.chunk.split_to(missing.min(self.chunk.len()));
        self.partial.extend_from_slice(&piece);
    }
}

#[cfg(test)]
impl Inbox {
    pub(crate) fn partial_capacity(&self) -> usize {
        self.partial.capacity()
    }
}
