//! The frame header: the first 16 bytes of every frame.

use std::fmt;
use std::ops::BitOr;

/// Size of a header in bytes.
pub const HEADER_SIZE: usize = 16;

/// Kind of a frame. A receiver may skip an unknown kind if bit 7 is set; any other unknown kind
/// ends the connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind(pub u8);

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $value:literal;)+) => {
        impl Kind {
            $($(#[doc = $doc])+ pub const $name: Self = Self($value);)+

            /// Returns the kind's name, if it is known.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// First frame of the side that connected.
    HELLO = 0x01;
    /// First frame of the side that accepted.
    WELCOME = 0x02;
    /// The sender of this frame will close: reason, time and an alternative address.
    GOAWAY = 0x03;
    /// Keepalive request.
    PING = 0x04;
    /// Keepalive reply; carries the correlation of the PING.
    PONG = 0x05;
    /// Returns credit for one-way frames (correlation 0) or for items of one stream.
    CREDIT = 0x06;
    /// A route became full or open again.
    FLOW = 0x07;
    /// Binds a route number on this connection, in this direction.
    BIND = 0x10;
    /// Subscribes to a name.
    SUBSCRIBE = 0x11;
    /// Ends a subscription.
    UNSUBSCRIBE = 0x12;
    /// A subscription was ended by the node.
    ENDED = 0x13;
    /// A call.
    REQUEST = 0x20;
    /// The answer to a call, or one item of it.
    REPLY = 0x21;
    /// The failure of a call; with correlation 0, of the connection.
    ERROR = 0x22;
    /// The caller cancels a call.
    CANCEL = 0x23;
    /// A one-way message, to one or all subscribers.
    SEND = 0x30;
    /// The result of a SEND that asked for it.
    RECEIPT = 0x31;
    /// A one-way message, acknowledged by the node.
    WRITE = 0x32;
    /// Appends records to a stream.
    APPEND = 0x40;
    /// Reads records of a stream.
    READ = 0x41;
    /// Reads records of a stream, and future ones.
    FOLLOW = 0x42;
    /// Takes from the limits of subjects.
    TAKE = 0x50;
    /// Ends a hold.
    SETTLE = 0x51;
    /// Reads the state of a subject's limits.
    PEEK = 0x52;
}

impl Kind {
    /// Returns true if a receiver that does not know the kind may skip the frame.
    pub const fn is_skippable(self) -> bool {
        self.0 & 0x80 != 0
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:02x}", self.0),
        }
    }
}

/// A frame's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// None set.
    pub const NONE: Self = Self(0);
    /// The payload starts with the remaining time in milliseconds, as a `u32`.
    pub const DEADLINE: Self = Self(0x01);
    /// There is a metadata block before the body.
    pub const METADATA: Self = Self(0x02);
    /// REPLY: more items follow.
    pub const MORE: Self = Self(0x04);
    /// REQUEST: the caller accepts any number of items.
    pub const STREAM: Self = Self(0x08);
    /// SEND: the sender asks for a RECEIPT.
    pub const REPORT: Self = Self(0x10);
    /// WRITE: acknowledge as soon as it is queued for the current subscribers.
    pub const MEMORY: Self = Self(0x20);
    /// WRITE: there is a [`Key`](crate::Key) before the body.
    pub const KEYED: Self = Self(0x40);
    /// REQUEST: delivers a message of a mailbox; there is a [`Delivery`](crate::Delivery) before
    /// the body.
    pub const WRITTEN: Self = Self(0x40);

    /// Returns true if all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Identifies the call of a frame: a slot in the caller's table and the slot's generation.
///
/// Slots are dense: a caller uses slot `n` only after all slots below it, so the other side can use
/// a plain array. The responder returns the value unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Correlation {
    /// Index in the caller's table.
    pub slot: u32,
    /// Number of uses of the slot, from 1, so that a late reply never matches another call.
    pub generation: u32,
}

impl Correlation {
    /// No call.
    pub const NONE: Self = Self {
        slot: 0,
        generation: 0,
    };

    /// Encodes it for the header: the slot in the low half.
    pub const fn as_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// Decodes it from the header.
    pub const fn from_u64(value: u64) -> Self {
        Self {
            slot: value as u32,
            generation: (value >> 32) as u32,
        }
    }
}

/// A decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of payload that follow.
    pub length: u32,
    /// Kind of the frame.
    pub kind: Kind,
    /// Flags of the frame.
    pub flags: Flags,
    /// A bound route; 0 for none.
    pub route: u16,
    /// The call, or [`Correlation::NONE`].
    pub correlation: Correlation,
}

impl Header {
    /// Decodes a header. The length is not checked here.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER_SIZE]) -> Self {
        let [l0, l1, l2, l3, kind, flags, r0, r1, correlation @ ..] = *bytes;
        Self {
            length: u32::from_le_bytes([l0, l1, l2, l3]),
            kind: Kind(kind),
            flags: Flags(flags),
            route: u16::from_le_bytes([r0, r1]),
            correlation: Correlation::from_u64(u64::from_le_bytes(correlation)),
        }
    }

    /// Encodes the header.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_SIZE] {
        let mut bytes = [0; HEADER_SIZE];
        bytes[0..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4] = self.kind.0;
        bytes[5] = self.flags.0;
        bytes[6..8].copy_from_slice(&self.route.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.correlation.as_u64().to_le_bytes());
        bytes
    }
}

/// Appends a frame whose payload is appended by `write`, and then fills in the length.
pub fn encode_frame(
    out: &mut Vec<u8>,
    kind: Kind,
    flags: Flags,
    route: u16,
    correlation: Correlation,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.extend_from_slice(
        &Header {
            length: 0,
            kind,
            flags,
            route,
            correlation,
        }
        .encode(),
    );
    write(out);
    let length = (out.len() - start - HEADER_SIZE) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}
