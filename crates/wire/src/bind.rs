//! A route: a small number that stands for a name, a method and how to choose among subscribers.

use crate::cursor::{Cursor, Malformed, put_text8, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// Whom a message on a route reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cast {
    /// One subscriber: round robin over instances, or the one instance that the name carries.
    Any,
    /// Every subscriber.
    All,
    /// No subscriber at all: the stream of that name.
    Stream,
    /// No subscriber at all: the conversation of that name.
    Conversation,
    /// No subscriber at all: the topic of that name, or one of its partitions.
    Topic,
}

/// Gives `route` its meaning, from the next frame on and in this direction only. Binding a bound
/// route replaces it.
///
/// Towards a node the name is the target. Towards a responder it is the subscription, and empty
/// when there is no node between. A name that is not valid or a method that is not known is
/// answered when the route is used, with the correlation of that use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The number, not 0.
    pub route: u16,
    /// Whom it reaches.
    pub cast: Cast,
    /// The method, empty for plain messages.
    pub method: &'a str,
    /// The name, see above.
    pub name: &'a str,
}

impl<'a> Bind<'a> {
    /// Reads a BIND frame.
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
