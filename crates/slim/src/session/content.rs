//! Contents of session messages, in canonical protocol buffers encoding: without zeros and empty
//! texts. Signatures cover these bytes, and receivers encode the message again to verify.
//!
//! ```text
//! content = payload 1 { type 1, bytes 2 } | command 2 { one field, whose number says which }
//! ```

use crate::name::{Name, set_once};
use crate::wire::{self, Fields, Malformed, put_bytes, put_nested};

/// Message types of point-to-point sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message = 1,
    Acknowledgement = 2,
    Again = 3,
    Repeated = 4,
    DiscoveryRequest = 5,
    DiscoveryReply = 6,
    JoinRequest = 7,
    JoinReply = 8,
    LeaveRequest = 9,
    LeaveReply = 10,
    Welcome = 12,
    Close = 13,
    GroupAck = 15,
    Heartbeat = 17,
}

impl Kind {
    pub(super) fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Message,
            2 => Self::Acknowledgement,
            3 => Self::Again,
            4 => Self::Repeated,
            5 => Self::DiscoveryRequest,
            6 => Self::DiscoveryReply,
            7 => Self::JoinRequest,
            8 => Self::JoinReply,
            9 => Self::LeaveRequest,
            10 => Self::LeaveReply,
            12 => Self::Welcome,
            13 => Self::Close,
            15 => Self::GroupAck,
            17 => Self::Heartbeat,
            _ => return None,
        })
    }

    /// True if the sender signs messages of this type.
    pub(super) fn is_control(self) -> bool {
        self as u32 > Self::Repeated as u32
    }
}

/// Field numbers of commands without fields.
pub(super) const DISCOVERY_REQUEST: u32 = 1;
pub(super) const DISCOVERY_REPLY: u32 = 2;
pub(super) const LEAVE_REQUEST: u32 = 5;
pub(super) const LEAVE_REPLY: u32 = 6;
pub(super) const GROUP_ACK: u32 = 11;

const CONTENT_PAYLOAD: u32 = 1;
const CONTENT_COMMAND: u32 = 2;
const JOIN_REQUEST: u32 = 3;
const JOIN_REPLY: u32 = 4;
const WELCOME: u32 = 8;
const CLOSE: u32 = 9;
const HEARTBEAT: u32 = 13;

/// Epoch number without MLS.
const NO_EPOCH: u64 = u64::MAX;

/// Session parameters in an invitation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JoinRequest {
    /// Interval in milliseconds and number of retries, for a reliable session.
    pub(super) timing: Option<[u32; 2]>,
    pub(super) wants_mls: bool,
}

impl JoinRequest {
    pub(super) fn read(content: &[u8]) -> Result<Self, Malformed> {
        let command = command(content, JOIN_REQUEST)?;
        let (mut timing, mut mls) = (None, None);
        let mut fields = Fields::new(command);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => set_once(&mut timing, &field, read_timing(field.bytes()?)?)?,
                4 => set_once(&mut mls, &field, ())?,
                _ => {}
            }
        }
        Ok(Self {
            timing,
            wants_mls: mls.is_some(),
        })
    }

    pub(super) fn content(&self) -> Vec<u8> {
        write_command(JOIN_REQUEST, |out| {
            if let Some([timeout_ms, retries]) = self.timing {
                put_nested(1, out, |out| {
                    put_number(1, timeout_ms.into(), out);
                    put_number(2, retries.into(), out);
                });
            }
        })
    }
}

fn read_timing(bytes: &[u8]) -> Result<[u32; 2], Malformed> {
    let (mut timeout_ms, mut retries) = (None, None);
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next()? {
        match field.number {
            1 => set_once(&mut timeout_ms, &field, field.number()? as u32)?,
            2 => set_once(&mut retries, &field, field.number()? as u32)?,
            _ => {}
        }
    }
    Ok([timeout_ms, retries].map(Option::unwrap_or_default))
}

/// Encodes a command without fields.
pub(super) fn bare(command: u32) -> Vec<u8> {
    write_command(command, |_| {})
}

/// Encodes the reply to a join request, without the key package that MLS would require.
pub(super) fn join_reply(name: Name<'_>) -> Vec<u8> {
    write_command(JOIN_REPLY, |out| put_participant(2, name, out))
}

pub(super) fn welcome(participants: [Name<'_>; 2]) -> Vec<u8> {
    write_command(WELCOME, |out| {
        for name in participants {
            put_participant(1, name, out);
        }
    })
}

pub(super) fn close(participants: [Name<'_>; 2]) -> Vec<u8> {
    write_command(CLOSE, |out| {
        for name in participants {
            name.put(1, out);
        }
    })
}

pub(super) fn heartbeat() -> Vec<u8> {
    write_command(HEARTBEAT, |out| put_number(1, NO_EPOCH, out))
}

/// Encodes an application payload.
pub(super) fn payload(payload_type: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + payload_type.len() + 16);
    put_nested(CONTENT_PAYLOAD, &mut out, |out| {
        put_text(1, payload_type, out);
        if !bytes.is_empty() {
            put_bytes(2, bytes, out);
        }
    });
    out
}

/// Decodes type and bytes of an application payload.
pub(super) fn read_payload(content: &[u8]) -> Result<(&str, &[u8]), Malformed> {
    let (mut payload_type, mut blob) = (None, None);
    let mut fields = Fields::new(only(content, CONTENT_PAYLOAD, "payload")?);
    while let Some(field) = fields.next()? {
        match field.number {
            1 => set_once(&mut payload_type, &field, field.text()?)?,
            2 => set_once(&mut blob, &field, field.bytes()?)?,
            _ => {}
        }
    }
    Ok((payload_type.unwrap_or_default(), blob.unwrap_or_default()))
}

fn command(content: &[u8], number: u32) -> Result<&[u8], Malformed> {
    only(
        only(content, CONTENT_COMMAND, "command")?,
        number,
        "command",
    )
}

/// Returns the field `number`, which must occur once.
fn only<'a>(bytes: &'a [u8], number: u32, what: &'static str) -> Result<&'a [u8], Malformed> {
    let mut found = None;
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next()? {
        if field.number == number {
            set_once(&mut found, &field, field.bytes()?)?;
        }
    }
    found.ok_or(Malformed::Missing(what))
}

fn write_command(number: u32, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put_nested(CONTENT_COMMAND, &mut out, |out| {
        put_nested(number, out, write)
    });
    out
}

/// Writes a participant that sends, receives and is online.
fn put_participant(field: u32, name: Name<'_>, out: &mut Vec<u8>) {
    put_nested(field, out, |out| {
        name.put(1, out);
        put_nested(2, out, |out| {
            put_number(1, 1, out);
            put_number(2, 1, out);
        });
    });
}

pub(super) fn put_number(field: u32, number: u64, out: &mut Vec<u8>) {
    if number != 0 {
        wire::put_number(field, number, out);
    }
}

pub(super) fn put_text(field: u32, text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() {
        put_bytes(field, text.as_bytes(), out);
    }
}
