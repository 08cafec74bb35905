//! `Packet`: an outgoing session message, before the fields of the link are added.

use crate::draft::Draft;
use crate::link::Link;
use crate::session::full_name::FullName;
use crate::wire::{put_bytes, put_nested, put_number};

/// An outgoing session message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub(super) source: FullName,
    pub(super) destination: FullName,
    pub(super) identity: String,
    /// Session type, message type, session number and message number.
    pub(super) session: [u32; 4],
    pub(super) content: Vec<u8>,
    pub(super) metadata: Vec<(String, String)>,
    /// Signature of a control message.
    pub(super) signature: Option<Vec<u8>>,
    /// True if the message reports a missing message.
    pub(super) is_error: bool,
}

impl Packet {
    /// Encodes the message for a link.
    pub fn encode(&self, link: &Link) -> Vec<u8> {
        let draft = Draft {
            source: self.source.name(),
            destination: self.destination.name(),
            identity: &self.identity,
            fanout: 1,
            ttl: crate::TTL,
        };
        let mut out = Vec::new();
        put_nested(3, &mut out, |out| {
            let error = self.is_error.then_some(true);
            draft.put_header(error, self.signature.as_deref(), link, out);
            put_nested(2, out, |out| {
                for (field, number) in (1..).zip(self.session) {
                    put_number(field, number.into(), out);
                }
            });
            put_bytes(3, &self.content, out);
        });
        for (key, value) in &self.metadata {
            put_nested(4, &mut out, |out| {
                put_bytes(1, key.as_bytes(), out);
                put_bytes(2, value.as_bytes(), out);
            });
        }
        out
    }
}
