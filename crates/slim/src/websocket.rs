//! Cuts messages out of a WebSocket (RFC 6455), in whatever pieces it arrives.
//!
//! ```text
//! | final 1 bit, reserved 3, opcode 4 | masked 1 bit, size 7 | size 16 or 64 bits | mask 4 | payload |
//! ```
//!
//! A message of the data plane is one binary message, in one frame or in several. As over gRPC, one that
//! is too large is told of once and skipped as it arrives: the stream goes on behind it. What no peer
//! sends that keeps to the protocol ends it.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// An empty buffer of more bytes than this is given back.
const KEPT_SIZE_MAX: usize = 16 << 10;

/// What a frame that is no part of a message carries at most (RFC 6455, 5.5).
pub const CONTROL_SIZE_MAX: usize = 125;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// What a message goes on with.
    Continuation,
    /// A message.
    Binary,
    /// The end.
    Close,
    /// A question for a sign of life.
    Ping,
    /// A sign of life.
    Pong,
}

/// What a client brings.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A message.
    Message(Bytes),
    /// A message of so many bytes, which is skipped.
    Oversize(u64),
    /// It wants these bytes back as a [`Opcode::Pong`].
    Ping(Bytes),
    /// It is there.
    Pong,
    /// It wants to end.
    Close,
}

/// What ends a WebSocket at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Not the data plane's.
    #[error("a message of text")]
    Text,
    /// An extension's bits, and none was agreed on.
    #[error("a frame with reserved bits")]
    Reserved,
    /// RFC 6455 leaves it open.
    #[error("a frame of the unknown kind {0}")]
    Opcode(u8),
    /// Clients mask.
    #[error("a frame without a mask")]
    Unmasked,
    /// Close, ping or pong in several frames, or with too much in it.
    #[error("a control frame that is cut or too large")]
    Control,
    /// A message goes on that was not begun, or begins before another has ended.
    #[error("frames of messages out of order")]
    Order,
    /// Its first bit is set.
    #[error("a frame of an impossible size")]
    Size,
}

/// The frames that a client sends.
#[derive(Debug)]
pub struct Frames {
    size_max: u64,
    /// What has arrived and was not taken: less than a frame, and its head.
    buffer: BytesMut,
    /// The message whose frames are being gathered, if there is one.
    begun: Option<Begun>,
    /// Bytes of a frame that is not wanted.
    to_skip: u64,
}

/// A message of several frames.
#[derive(Debug, Default)]
struct Begun {
    /// Of all frames so far.
    size: u64,
    /// What they brought; nothing once it is too much.
    payload: BytesMut,
}

/// The beginning of a frame.
struct Head {
    is_final: bool,
    opcode: Opcode,
    mask: [u8; 4],
    /// Of the payload.
    size: u64,
    /// Its own.
    head_size: usize,
}

impl Frames {
    /// Takes messages of up to `size_max` bytes.
    pub fn new(size_max: u32) -> Self {
        Self {
            size_max: size_max.into(),
            buffer: BytesMut::new(),
            begun: None,
            to_skip: 0,
        }
    }

    /// Takes in what has arrived: memory grows with what is there, whatever size was announced.
    pub fn feed(&mut self, bytes: &[u8]) {
        let skipped = self.to_skip.min(bytes.len() as u64) as usize;
        self.to_skip -= skipped as u64;
        self.buffer.extend_from_slice(&bytes[skipped..]);
    }

    /// What comes next; `None` when more has to arrive first.
    pub fn pull(&mut self) -> Result<Option<Event>, Violation> {
        while let Some(head) = Head::read(&self.buffer)? {
            let event = match head.opcode {
                Opcode::Binary | Opcode::Continuation => self.take_part(&head)?,
                _ => self.take_control(&head),
            };
            match event {
                Taken::Event(event) => return Ok(Some(event)),
                Taken::Part => {}
                Taken::Nothing => return Ok(None),
            }
        }
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_SIZE_MAX {
            self.buffer = BytesMut::new();
        }
        Ok(None)
    }

    fn take_control(&mut self, head: &Head) -> Taken {
        let Some(payload) = self.payload(head) else {
            return Taken::Nothing;
        };
        Taken::Event(match head.opcode {
            Opcode::Ping => Event::Ping(payload.freeze()),
            Opcode::Pong => Event::Pong,
            _ => Event::Close,
        })
    }

    /// Takes a frame of a message, if it is there or is not wanted.
    fn take_part(&mut self, head: &Head) -> Result<Taken, Violation> {
        if (head.opcode == Opcode::Continuation) != self.begun.is_some() {
            return Err(Violation::Order);
        }
        let before = self.begun.as_ref().map_or(0, |begun| begun.size);
        let size = before.saturating_add(head.size);
        if size > self.size_max {
            self.skip(head);
            self.begun = (!head.is_final).then(|| Begun {
                size,
                payload: BytesMut::new(),
            });
            return Ok(match head.is_final {
                true => Taken::Event(Event::Oversize(size)),
                false => Taken::Part,
            });
        }
        let Some(part) = self.payload(head) else {
            return Ok(Taken::Nothing);
        };
        let payload = match self.begun.take() {
            None => part,
            Some(mut begun) => {
                begun.payload.unsplit(part);
                begun.payload
            }
        };
        if head.is_final {
            return Ok(Taken::Event(Event::Message(payload.freeze())));
        }
        self.begun = Some(Begun { size, payload });
        Ok(Taken::Part)
    }

    /// The payload without its mask, once it is whole.
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

/// What became of a frame.
enum Taken {
    Event(Event),
    /// It is a part of something.
    Part,
    /// It is not there as a whole.
    Nothing,
}

impl Head {
    /// `None` when it is not there as a whole.
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

    /// The head of a node's frame with a payload of `size` bytes behind it, which is not masked.
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

/// Eight bytes at a time: a mask is four, over and over.
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
