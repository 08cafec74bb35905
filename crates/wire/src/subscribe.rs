//! Subscriptions of a connection.

use crate::cursor::{Cursor, Malformed, put_text16};
use crate::description::Description;
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// Option bit: add the sender's name to deliveries, as the metadata entry `source`.
pub const SUBSCRIBE_WITH_SOURCE: u8 = 0x01;
/// Option bit: a description of the agent follows the name. An older node ignores it.
pub const SUBSCRIBE_DESCRIBED: u8 = 0x02;

/// Subscribes to a name. Answered by a REPLY with the full name, including the instance, or by an
/// ERROR.
///
/// If the given instance is already subscribed on another connection, it is taken over: the older
/// subscription gets ENDED with `replaced`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Option bits, but [`SUBSCRIBE_DESCRIBED`], which `description` implies.
    pub options: u8,
    /// The name, with or without an instance.
    pub name: &'a str,
    /// The description of the agent, if it describes itself.
    pub description: Option<Description<'a>>,
}

impl<'a> Subscribe<'a> {
    /// Decodes a SUBSCRIBE payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "SUBSCRIBE");
        let (options, name) = (cursor.u8()?, cursor.text16()?);
        let description = match options & SUBSCRIBE_DESCRIBED {
            0 => None,
            _ => Some(Description::decode(&mut cursor)?),
        };
        Ok(Self {
            options: options & !SUBSCRIBE_DESCRIBED,
            name,
            description,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, correlation: Correlation, out: &mut Vec<u8>) {
        encode_frame(out, Kind::SUBSCRIBE, Flags::NONE, 0, correlation, |out| {
            let described = self.description.map_or(0, |_| SUBSCRIBE_DESCRIBED);
            out.push(self.options | described);
            put_text16(out, self.name);
            if let Some(description) = &self.description {
                description.encode(out);
            }
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
