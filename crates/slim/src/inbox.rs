//! Cuts messages out of a gRPC stream, in whatever pieces it arrives.
//!
//! ```text
//! | compressed 1 | size 4, big endian | message |
//! ```
//!
//! A message that lies whole in a piece shares the piece's memory. One that is too large is told of
//! once and skipped as it arrives, so that the stream goes on behind it.

use bytes::{Buf, Bytes, BytesMut};

const HEAD_SIZE: usize = 5;

/// What a stream brings.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// A message.
    Message(Bytes),
    /// A message of so many bytes, which is skipped.
    Oversize(u32),
}

/// A message is compressed; none is unless both sides agreed on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message is compressed, which was not agreed on")]
pub struct Compressed;

/// The messages of one stream.
#[derive(Debug)]
pub struct Inbox {
    size_max: u32,
    chunk: Bytes,
    /// The beginning of a message, with its head, that has not arrived in one piece.
    begun: BytesMut,
    /// Bytes of a message that is too large.
    to_skip: u32,
}

impl Inbox {
    /// Takes messages of up to `size_max` bytes.
    pub fn new(size_max: u32) -> Self {
        Self {
            size_max,
            chunk: Bytes::new(),
            begun: BytesMut::new(),
            to_skip: 0,
        }
    }

    /// Takes in a piece, after [`pull`](Self::pull) has said that there is no more.
    pub fn feed(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the piece before has been read");
        self.chunk = chunk;
    }

    /// The next message; `None` when more has to arrive first.
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

    /// The size of the message that comes next, once its head is there.
    fn head(&mut self) -> Result<Option<u32>, Compressed> {
        if !self.begun.is_empty() {
            self.collect(HEAD_SIZE);
        } else if self.chunk.len() < HEAD_SIZE {
            self.collect(HEAD_SIZE);
            return Ok(None);
        }
        let head = match self.begun.is_empty() {
            true => &self.chunk[..],
            false => &self.begun[..],
        };
        match head {
            [0, a, b, c, d, ..] => Ok(Some(u32::from_be_bytes([*a, *b, *c, *d]))),
            [_, _, _, _, _, ..] => Err(Compressed),
            _ => Ok(None),
        }
    }

    fn drop_head(&mut self) {
        match self.begun.is_empty() {
            true => self.chunk.advance(HEAD_SIZE),
            false => self.begun.clear(),
        }
    }

    /// The message behind the head, once it is whole.
    fn take(&mut self, size: usize) -> Option<Bytes> {
        let whole = HEAD_SIZE + size;
        if self.begun.is_empty() && self.chunk.len() >= whole {
            let mut message = self.chunk.split_to(whole);
            message.advance(HEAD_SIZE);
            return Some(message);
        }
        self.collect(whole);
        if self.begun.len() < whole {
            return None;
        }
        let mut message = std::mem::take(&mut self.begun).freeze();
        message.advance(HEAD_SIZE);
        Some(message)
    }

    /// Moves what has arrived behind what has begun, up to `whole` bytes: memory grows with what is
    /// there, whatever size was announced.
    fn collect(&mut self, whole: usize) {
        let missing = whole.saturating_sub(self.begun.len());
        let piece = self.chunk.split_to(missing.min(self.chunk.len()));
        self.begun.extend_from_slice(&piece);
    }
}

#[cfg(test)]
impl Inbox {
    pub(crate) fn begun_capacity(&self) -> usize {
        self.begun.capacity()
    }
}
