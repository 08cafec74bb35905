//! `Frames`: splits a WebSocket stream (RFC 6455) into messages, for any division into chunks.
//!
//! ```text
//! | final 1 bit, reserved 3, opcode 4 | masked 1 bit, size 7 | size 16 or 64 bits | mask 4 | payload |
//! ```
//!
//! A message of the data plane is one binary message, in one frame or several. As with gRPC, a
//! message above the size limit is reported once and skipped as it arrives, so the stream continues
//! after it. A violation of the protocol ends the stream.
//!
//! A library does not do this: tungstenite 0.29 cannot skip a message above its limit, and reserves
//! memory for a frame by the size that its header announces.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Size in bytes above which an empty buffer is freed.
const KEPT_SIZE_MAX: usize = 16 << 10;

/// Maximum payload of a control frame in bytes (RFC 6455, 5.5).
pub const CONTROL_SIZE_MAX: usize = 125;

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Continues a message.
    Continuation,
    /// Starts a message.
    Binary,
    /// Closes the stream.
    Close,
    /// Keepalive request.
    Ping,
    /// Keepalive answer.
    Pong,
}

/// An event from the client.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A message.
    Message(Bytes),
    /// Size in bytes of a message above the limit, which is skipped.
    Oversize(u64),
    /// Keepalive request; the payload must be returned in a [`Opcode::Pong`].
    Ping(Bytes),
    /// Keepalive answer.
    Pong,
    /// The client closes the stream.
    Close,
}

/// Violation of the WebSocket protocol, which ends the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A text message; the data plane uses binary messages.
    #[error("text message, only binary messages are supported")]
    Text,
    /// A reserved bit is set, although no extension was negotiated.
    #[error("frame with reserved bits")]
    Reserved,
    /// An opcode that RFC 6455 does not define.
    #[error("frame with unknown opcode {0}")]
    Opcode(u8),
    /// A client frame without a mask.
    #[error("frame without a mask")]
    Unmasked,
    /// A fragmented or oversized close, ping or pong.
    #[error("control frame is fragmented or too large")]
    Control,
    /// A continuation without a start, or a start within another message.
    #[error("frames of a message are out of order")]
    Order,
    /// The highest bit of the size is set.
    #[error("frame size has its highest bit set")]
    Size,
}

/// Decoder of the frames that a client sends.
#[derive(Debug)]
pub struct Frames {
    size_max: u64,
    /// Received bytes that were not processed: less than a frame with its head.
    buffer: BytesMut,
    /// Message whose frames are being collected.
    partial: Option<PartialMessage>,
    /// Remaining bytes of a skipped frame.
    to_skip: u64,
}

/// A message of several frames.
#[derive(Debug, Default)]
struct PartialMessage {
    /// Size of all frames so far, in bytes.
    size: u64,
    /// Payload so far; empty once the message is too large.
    payload: BytesMut,
}

/// Header of a frame.
struct Head {
    is_final: bool,
    opcode: Opcode,
    mask: [u8; 4],
    /// Size of the payload.
    size: u64,
    /// Size of the header itself.
    head_size: usize,
}

impl Frames {
    /// Creates a decoder for messages of up to `size_max` bytes.
    pub fn new(size_max: u32) -> Self {
        Self {
            size_max: size_max.into(),
            buffer: BytesMut::new(),
            partial: None,
            to_skip: 0,
        }
    }

    /// Adds received bytes. Memory grows with these, not with the announced size.
    pub fn feed(&mut self, bytes: &[u8]) {
        let skipped = self.to_skip.min(bytes.len() as u64) as usize;
        self.to_skip -= skipped as u64;
        self.buffer.extend_from_slice(&bytes[skipped..]);
    }

    /// Returns the next event; `None` if more bytes are needed.
    pub fn pull(&mut self) -> Result<Option<Event>, Violation> {
        while let Some(head) = Head::read(&self.buffer)? {
            let event = match head.opcode {
                Opcode::Binary | Opcode::Continuation => self.take_part(&head)?,
                _ => self.take_control(&head),
            };
            match event {
                FrameResult::Event(event) => return Ok(Some(event)),
                FrameResult::Part => {}
                FrameResult::Incomplete => return Ok(None),
            }
        }
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_SIZE_MAX {
            self.buffer = BytesMut::new();
        }
        Ok(None)
    }

    fn take_control(&mut self, head: &Head) -> FrameResult {
        let Some(payload) = self.payload(head) else {
            return FrameResult::Incomplete;
        };
        FrameResult::Event(match head.opcode {
            Opcode::Ping => Event::Ping(payload.freeze()),
            Opcode::Pong => Event::Pong,
            _ => Event::Close,
        })
    }

    /// Processes a frame of a message once it is complete or to be skipped.
    fn take_part(&mut self, head: &Head) -> Result<FrameResult, Violation> {
        if (head.opcode == Opcode::Continuation) != self.partial.is_some() {
            return Err(Violation::Order);
        }
        let before = self.partial.as_ref().map_or(0, |partial| partial.size);
        let size = before.saturating_add(head.size);
        if size > self.size_max {
            self.skip(head);
            self.partial = (!head.is_final).then(|| PartialMessage {
                size,
                payload: BytesMut::new(),
            });
            return Ok(match head.is_final {
                true => FrameResult::Event(Event::Oversize(size)),
                false => FrameResult::Part,
            });
        }
        let Some(part) = self.payload(head) else {
            return Ok(FrameResult::Incomplete);
        };
        let payload = match self.partial.take() {
            None => part,
            Some(mut partial) => {
                partial.payload.unsplit(part);
                partial.payload
            }
        };
        if head.is_final {
            return Ok(FrameResult::Event(Event::Message(payload.freeze())));
        }
        self.partial = Some(PartialMessage { size, payload });
        Ok(FrameResult::Part)
    }

    /// Returns the unmasked payload once it is complete.
    fn payload(&mut self, head: &Head) -> Option<BytesMut> {
        let size = usize::try_from(head.size).ok()?;
        let whole = head.head_size + size;
        if self.buffer.len() < whole {
            return None;
        }
        let mut payload = self.buffer.split_to(whole);
        payload.advance(head.head_size);
        unmask(&mut payload, head.mask);
        Some(payload)
    }

    fn skip(&mut self, head: &Head) {
        self.buffer.advance(head.head_size);
        let there = head.size.min(self.buffer.len() as u64);
        self.buffer.advance(there as usize);
        self.to_skip = head.size - there;
    }
}

/// Result of processing a frame.
enum FrameResult {
    Event(Event),
    /// The frame is a part of a message.
    Part,
    /// The frame is incomplete.
    Incomplete,
}

impl Head {
    /// Decodes the header of a frame; `None` if it is incomplete.
    fn read(bytes: &[u8]) -> Result<Option<Self>, Violation> {
        let [first, second, rest @ ..] = bytes else {
            return Ok(None);
        };
        if first & 0x70 != 0 {
            return Err(Violation::Reserved);
        }
        let is_final = first & 0x80 != 0;
        let opcode = Opcode::from_number(first & 0x0f)?;
        if second & 0x80 == 0 {
            return Err(Violation::Unmasked);
        }
        let short = second & 0x7f;
        if opcode.is_control() && (!is_final || usize::from(short) > CONTROL_SIZE_MAX) {
            return Err(Violation::Control);
        }
        let (size, rest) = match short {
            126 => match rest.split_first_chunk() {
                Some((size, rest)) => (u16::from_be_bytes(*size).into(), rest),
                None => return Ok(None),
            },
            127 => match rest.split_first_chunk() {
                Some((size, rest)) => (u64::from_be_bytes(*size), rest),
                None => return Ok(None),
            },
            short => (short.into(), rest),
        };
        if size > u64::MAX / 2 {
            return Err(Violation::Size);
        }
        let Some((mask, rest)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        Ok(Some(Self {
            is_final,
            opcode,
            mask: *mask,
            size,
            head_size: bytes.len() - rest.len(),
        }))
    }
}

impl Opcode {
    fn from_number(number: u8) -> Result<Self, Violation> {
        match number {
            0 => Ok(Self::Continuation),
            1 => Err(Violation::Text),
            2 => Ok(Self::Binary),
            8 => Ok(Self::Close),
            9 => Ok(Self::Ping),
            10 => Ok(Self::Pong),
            other => Err(Violation::Opcode(other)),
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }

    /// Writes the header of an unmasked frame with a payload of `size` bytes, as a node sends it.
    pub fn put_head(self, size: usize, out: &mut impl BufMut) {
        out.put_u8(0x80 | self.number());
        match size {
            ..126 => out.put_u8(size as u8),
            126..=0xffff => {
                out.put_u8(126);
                out.put_u16(size as u16);
            }
            _ => {
                out.put_u8(127);
                out.put_u64(size as u64);
            }
        }
    }
}

/// Removes a mask of four bytes, eight bytes at a time.
fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = payload.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.into_iter().cycle()) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests;
