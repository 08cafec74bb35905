//! The handshake: who speaks which version, and how much each side takes in at once.

use crate::cursor::{Cursor, Malformed, put_text8, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// First four bytes of a HELLO payload, so that a stranger is recognised at once.
pub const MAGIC: [u8; 4] = *b"TLPH";

/// The newest version of the protocol this crate speaks.
pub const VERSION: u16 = 1;

/// The oldest version of the protocol this crate speaks.
pub const VERSION_MIN: u16 = 1;

/// Feature: holds have ids of 128 bits, and an answer says when one ends by itself. Without it the
/// peer takes no holds.
pub const LONG_HOLDS: u32 = 1;

/// Optional features this crate knows, as bits.
pub const FEATURES: u32 = LONG_HOLDS;

/// How much one side takes in before the other must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Largest payload accepted, in bytes.
    pub frame_size_max: u32,
    /// Calls accepted in flight.
    pub calls_max: u32,
    /// One-way messages accepted before credit is returned.
    pub credit_messages: u32,
    /// One-way payload bytes accepted before credit is returned; a single frame may exceed it
    /// when nothing else is outstanding.
    pub credit_bytes: u64,
    /// Milliseconds of silence after which this side pings; twice that and a half without
    /// anything received, and it takes the peer for dead. 0: never.
    pub keepalive_ms: u32,
}

impl Window {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame_size_max.to_le_bytes());
        out.extend_from_slice(&self.calls_max.to_le_bytes());
        out.extend_from_slice(&self.credit_messages.to_le_bytes());
        out.extend_from_slice(&self.credit_bytes.to_le_bytes());
        out.extend_from_slice(&self.keepalive_ms.to_le_bytes());
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            frame_size_max: cursor.u32()?,
            calls_max: cursor.u32()?,
            credit_messages: cursor.u32()?,
            credit_bytes: cursor.u64()?,
            keepalive_ms: cursor.u32()?,
        })
    }
}

/// First frame of the side that connected. Bytes behind the known fields are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Oldest version spoken.
    pub version_min: u16,
    /// Newest version spoken.
    pub version_max: u16,
    /// Features offered.
    pub features: u32,
    /// What this side takes in.
    pub window: Window,
    /// Bearer token, empty for none.
    pub token: &'a str,
    /// The agent's name, empty for none.
    pub name: &'a str,
}

impl<'a> Hello<'a> {
    /// Reads a HELLO payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "HELLO");
        if cursor.take(MAGIC.len())? != MAGIC {
            return Err(Malformed {
                what: "HELLO: this is not the Telpher protocol",
            });
        }
        Ok(Self {
            version_min: cursor.u16()?,
            version_max: cursor.u16()?,
            features: cursor.u32()?,
            window: Window::decode(&mut cursor)?,
            token: cursor.text16()?,
            name: cursor.text16()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_frame(out, Kind::HELLO, Flags::NONE, 0, Correlation::NONE, |out| {
            out.extend_from_slice(&MAGIC);
            out.extend_from_slice(&self.version_min.to_le_bytes());
            out.extend_from_slice(&self.version_max.to_le_bytes());
            out.extend_from_slice(&self.features.to_le_bytes());
            self.window.encode(out);
            put_text16(out, self.token);
            put_text16(out, self.name);
        });
    }

    /// The newest version both sides speak.
    pub fn negotiate(&self) -> Option<u16> {
        let version = self.version_max.min(VERSION);
        (version >= self.version_min.max(VERSION_MIN)).then_some(version)
    }
}

/// What answers at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An RPC server: routes carry a method and no name.
    Server,
    /// A node: routes carry a name.
    Node,
}

/// First frame of the side that accepted. Bytes behind the known fields are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// The version both will speak.
    pub version: u16,
    /// What answers.
    pub role: Role,
    /// Features both have.
    pub features: u32,
    /// What this side takes in.
    pub window: Window,
    /// The connection's number at the accepting side.
    pub connection: u64,
    /// Software and version, for logs.
    pub software: &'a str,
}

impl<'a> Welcome<'a> {
    /// Reads a WELCOME payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "WELCOME");
        Ok(Self {
            version: cursor.u16()?,
            role: match cursor.u8()? {
                0 => Role::Server,
                1 => Role::Node,
                _ => return Err(cursor.malformed()),
            },
            features: cursor.u32()?,
            window: Window::decode(&mut cursor)?,
            connection: cursor.u64()?,
            software: cursor.text8()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_frame(
            out,
            Kind::WELCOME,
            Flags::NONE,
            0,
            Correlation::NONE,
            |out| {
                out.extend_from_slice(&self.version.to_le_bytes());
                out.push(match self.role {
                    Role::Server => 0,
                    Role::Node => 1,
                });
                out.extend_from_slice(&self.features.to_le_bytes());
                self.window.encode(out);
                out.extend_from_slice(&self.connection.to_le_bytes());
                put_text8(out, self.software);
            },
        );
    }
}
