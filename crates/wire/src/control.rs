//! Control frames: credit, flow control, keepalive and shutdown of a connection.

use model::ErrorCode;

use crate::cursor::{Cursor, Malformed, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// Returns credit: with [`Correlation::NONE`] for consumed one-way frames, otherwise for items of
/// that call's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Number of messages or items.
    pub messages: u32,
    /// Number of payload bytes; 0 for a stream.
    pub bytes: u64,
}

impl Credit {
    /// Decodes a CREDIT payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "CREDIT");
        Ok(Self {
            messages: cursor.u32()?,
            bytes: cursor.u64()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, correlation: Correlation, out: &mut Vec<u8>) {
        encode_frame(out, Kind::CREDIT, Flags::NONE, 0, correlation, |out| {
            out.extend_from_slice(&self.messages.to_le_bytes());
            out.extend_from_slice(&self.bytes.to_le_bytes());
        });
    }
}

/// The result of a SEND with the REPORT flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Copies enqueued for subscribers.
    pub delivered: u32,
    /// Copies dropped because a subscriber was full.
    pub dropped: u32,
}

impl Receipt {
    /// Decodes a RECEIPT payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "RECEIPT");
        Ok(Self {
            delivered: cursor.u32()?,
            dropped: cursor.u32()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, correlation: Correlation, out: &mut Vec<u8>) {
        encode_frame(out, Kind::RECEIPT, Flags::NONE, 0, correlation, |out| {
            out.extend_from_slice(&self.delivered.to_le_bytes());
            out.extend_from_slice(&self.dropped.to_le_bytes());
        });
    }
}

/// Announces that the sender will close: calls under way may finish, new ones must go elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goaway<'a> {
    /// The reason.
    pub code: ErrorCode,
    /// Milliseconds until the sender closes.
    pub drain_ms: u32,
    /// Address to connect to instead; empty for "this one, later".
    pub address: &'a str,
    /// A message for people.
    pub message: &'a str,
}

impl<'a> Goaway<'a> {
    /// Decodes a GOAWAY payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "GOAWAY");
        Ok(Self {
            code: ErrorCode::from_u16(cursor.u16()?).unwrap_or(ErrorCode::Internal),
            drain_ms: cursor.u32()?,
            address: cursor.text16()?,
            message: cursor.text16()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_frame(
            out,
            Kind::GOAWAY,
            Flags::NONE,
            0,
            Correlation::NONE,
            |out| {
                out.extend_from_slice(&self.code.as_u16().to_le_bytes());
                out.extend_from_slice(&self.drain_ms.to_le_bytes());
                put_text16(out, self.address);
                put_text16(out, self.message);
            },
        );
    }
}

/// Reports that a subscription was ended by the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionEnd<'a> {
    /// The reason.
    pub code: ErrorCode,
    /// The full name of the subscription.
    pub name: &'a str,
}

impl<'a> SubscriptionEnd<'a> {
    /// Decodes an ENDED payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "ENDED");
        Ok(Self {
            code: ErrorCode::from_u16(cursor.u16()?).unwrap_or(ErrorCode::Internal),
            name: cursor.text16()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_frame(out, Kind::ENDED, Flags::NONE, 0, Correlation::NONE, |out| {
            out.extend_from_slice(&self.code.as_u16().to_le_bytes());
            put_text16(out, self.name);
        });
    }
}

/// Appends a FLOW frame: the route is full, or open again.
pub fn encode_flow(route: u16, full: bool, out: &mut Vec<u8>) {
    encode_frame(
        out,
        Kind::FLOW,
        Flags::NONE,
        route,
        Correlation::NONE,
        |out| {
            out.push(u8::from(full));
        },
    );
}

/// Decodes a FLOW payload. True if the route is full.
pub fn decode_flow(payload: &[u8]) -> Result<bool, Malformed> {
    Ok(Cursor::new(payload, "FLOW").u8()? != 0)
}

/// Appends the REPLY to a WRITE in memory: the number of subscribers it was queued for.
pub fn encode_copies(copies: u32, correlation: Correlation, out: &mut Vec<u8>) {
    encode_frame(out, Kind::REPLY, Flags::NONE, 0, correlation, |out| {
        out.extend_from_slice(&copies.to_le_bytes());
    });
}

/// Decodes the payload of the REPLY to a WRITE in memory.
pub fn decode_copies(payload: &[u8]) -> Result<u32, Malformed> {
    Cursor::new(payload, "WRITE reply").u32()
}

/// Appends a CANCEL frame.
pub fn encode_cancel(correlation: Correlation, out: &mut Vec<u8>) {
    encode_frame(out, Kind::CANCEL, Flags::NONE, 0, correlation, |_| {});
}

/// Appends a PING frame.
pub fn encode_ping(correlation: Correlation, out: &mut Vec<u8>) {
    encode_frame(out, Kind::PING, Flags::NONE, 0, correlation, |_| {});
}

/// Appends a PONG frame.
pub fn encode_pong(correlation: Correlation, out: &mut Vec<u8>) {
    encode_frame(out, Kind::PONG, Flags::NONE, 0, correlation, |_| {});
}
