//! The handshake: protocol versions, features, and the window of each side.

use crate::cursor::{Cursor, Malformed, put_text8, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// First four bytes of a HELLO payload, which identify the protocol.
pub const MAGIC: [u8; 4] = *b"TLPH";

/// The newest supported protocol version.
pub const VERSION: u16 = 1;

/// The oldest supported protocol version.
pub const VERSION_MIN: u16 = 1;

/// Feature: holds have 128-bit ids, and an answer states when a hold expires. A peer without it
/// cannot take holds.
pub const LONG_HOLDS: u32 = 1;

/// Supported optional features, as bits.
pub const FEATURES: u32 = LONG_HOLDS;

/// Receive limits of one side. The other side must wait when they are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Largest accepted payload, in bytes.
    pub frame_size_max: u32,
    /// Calls in flight at most.
    pub calls_max: u32,
    /// One-way messages accepted before credit is returned.
    pub credit_messages: u32,
    /// One-way payload bytes accepted before credit is returned. A single frame may exceed it if
    /// nothing else is outstanding.
    pub credit_bytes: u64,
    /// Milliseconds of silence after which this side pings. It considers the peer dead after 2.5
    /// times as long without any bytes. 0: never.
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

/// First frame of the connecting side. Bytes after the known fields are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Oldest supported version.
    pub version_min: u16,
    /// Newest supported version.
    pub version_max: u16,
    /// Offered features.
    pub features: u32,
    /// Receive limits of this side.
    pub window: Window,
    /// Bearer token; empty for none.
    pub token: &'a str,
    /// The agent's name; empty for none.
    pub name: &'a str,
}

impl<'a> Hello<'a> {
    /// Decodes a HELLO payload.
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

    /// Returns the newest version that both sides support.
    pub fn negotiate(&self) -> Option<u16> {
        let version = self.version_max.min(VERSION);
        (version >= self.version_min.max(VERSION_MIN)).then_some(version)
    }
}

/// Kind of the accepting side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An RPC server: routes carry a method and no name.
    Server,
    /// A node: routes carry a name.
    Node,
}

/// First frame of the accepting side. Bytes after the known fields are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// The negotiated version.
    pub version: u16,
    /// Kind of this side.
    pub role: Role,
    /// Features that both sides support.
    pub features: u32,
    /// Receive limits of this side.
    pub window: Window,
    /// Id of the connection at the accepting side.
    pub connection: u64,
    /// Software and version, for logs.
    pub software: &'a str,
}

impl<'a> Welcome<'a> {
    /// Decodes a WELCOME payload.
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
