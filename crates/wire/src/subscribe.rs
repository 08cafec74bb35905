//! Subscriptions of a connection.

use crate::cursor::{Cursor, Malformed, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// Option bit: add the sender's name to deliveries, as the metadata entry `source`.
pub const SUBSCRIBE_WITH_SOURCE: u8 = 0x01;

/// Subscribes to a name. Answered by a REPLY with the full name, including the instance, or by an
/// ERROR.
///
/// If the given instance is already subscribed on another connection, it is taken over: the older
/// subscription gets ENDED with `replaced`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Option bits.
    pub options: u8,
    /// The name, with or without an instance.
    pub name: &'a str,
}

impl<'a> Subscribe<'a> {
    /// Decodes a SUBSCRIBE payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "SUBSCRIBE");
        Ok(Self {
            options: cursor.u8()?,
            name: cursor.text16()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, correlation: Correlation, out: &mut Vec<u8>) {
        encode_frame(out, Kind::SUBSCRIBE, Flags::NONE, 0, correlation, |out| {
            out.push(self.options);
            put_text16(out, self.name);
        });
    }
}

/// Appends an UNSUBSCRIBE frame for a full name.
pub fn encode_unsubscribe(name: &str, correlation: Correlation, out: &mut Vec<u8>) {
    encode_frame(out, Kind::UNSUBSCRIBE, Flags::NONE, 0, correlation, |out| {
        put_text16(out, name)
    });
}

/// Appends the REPLY to a SUBSCRIBE or UNSUBSCRIBE: the full name.
pub fn encode_subscribed(name: &str, correlation: Correlation, out: &mut Vec<u8>) {
    encode_frame(out, Kind::REPLY, Flags::NONE, 0, correlation, |out| {
        put_text16(out, name)
    });
}

/// Decodes the payload of an UNSUBSCRIBE, or of the REPLY to a SUBSCRIBE.
pub fn decode_name(payload: &[u8]) -> Result<&str, Malformed> {
    Cursor::new(payload, "name").text16()
}
