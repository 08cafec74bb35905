//! BIND: gives a route number a name, a method and a choice of subscribers.

use crate::cursor::{Cursor, Malformed, put_text8, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// The receivers of a message on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cast {
    /// A single subscriber: round robin over the instances, or the instance in the name.
    Any,
    /// Every subscriber.
    All,
    /// The stream with this name, not subscribers.
    Stream,
    /// The conversation with this name, not subscribers.
    Conversation,
    /// The topic with this name, or one of its partitions, not subscribers.
    Topic,
}

/// Binds `route` from the next frame on, in this direction only. Binding a bound route replaces it.
///
/// To a node, the name is the target. To a responder, it is the subscription, or empty on a direct
/// connection. An invalid name or an unknown method is an error of the frames that use the route,
/// with their correlation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The route number, not 0.
    pub route: u16,
    /// The receivers.
    pub cast: Cast,
    /// The method; empty for plain messages.
    pub method: &'a str,
    /// The name; see [`Bind`].
    pub name: &'a str,
}

impl<'a> Bind<'a> {
    /// Decodes a BIND frame.
    pub fn decode(route: u16, payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "BIND");
        let cast = match cursor.u8()? {
            0 => Cast::Any,
            1 => Cast::All,
            2 => Cast::Stream,
            3 => Cast::Conversation,
            4 => Cast::Topic,
            _ => return Err(cursor.malformed()),
        };
        let bind = Self {
            route,
            cast,
            method: cursor.text8()?,
            name: cursor.text16()?,
        };
        if route == 0 {
            Err(cursor.malformed())
        } else {
            Ok(bind)
        }
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_frame(
            out,
            Kind::BIND,
            Flags::NONE,
            self.route,
            Correlation::NONE,
            |out| {
                out.push(match self.cast {
                    Cast::Any => 0,
                    Cast::All => 1,
                    Cast::Stream => 2,
                    Cast::Conversation => 3,
                    Cast::Topic => 4,
                });
                put_text8(out, self.method);
                put_text16(out, self.name);
            },
        );
    }
}
