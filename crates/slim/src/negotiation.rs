//! `Negotiation`: the first message of a stream, and its reply.

use crate::name::set_once;
use crate::wire::{Fields, Malformed, put_bytes, put_nested, put_number};

/// A link negotiation, request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiation<'a> {
    /// Link id, chosen by the connecting end.
    pub link_id: &'a str,
    /// Version of the data plane.
    pub version: &'a str,
    /// True for a reply.
    pub is_reply: bool,
    /// X25519 public key of 32 bytes; empty for a link without MACs.
    pub public_key: &'a [u8],
    /// Requested kind of peer; the reply repeats it.
    pub kind: ConnectionKind,
    /// Id of the peer.
    pub node_id: &'a str,
    /// Name of a group of replicated nodes.
    pub deployment: &'a str,
    /// ML-KEM-768 key of a peer that requires a post-quantum link.
    pub kem: Option<&'a [u8]>,
}

/// Kind of a connecting peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// Another node, or a client that does not say its kind.
    Remote,
    /// A replica.
    Peer,
    /// An application.
    Edge,
    /// A kind of a later version.
    Other(u32),
}

impl ConnectionKind {
    fn from_number(number: u64) -> Self {
        match number as u32 {
            0 => Self::Remote,
            1 => Self::Peer,
            2 => Self::Edge,
            other => Self::Other(other),
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::Remote => 0,
            Self::Peer => 1,
            Self::Edge => 2,
            Self::Other(other) => other,
        }
    }
}

impl<'a> Negotiation<'a> {
    pub(crate) fn scan(link: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let mut payload = None;
        let mut fields = Fields::new(link);
        while let Some(field) = fields.next()? {
            if field.number == 1 {
                set_once(&mut payload, &field, Self::read(field.bytes()?)?)?;
            }
        }
        Ok(payload)
    }

    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut texts = [None; 4];
        let [link_id, version, node_id, deployment] = &mut texts;
        let (mut is_reply, mut public_key, mut kind, mut kem) = (None, None, None, None);
        let mut fields = Fields::new(bytes);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => set_once(link_id, &field, field.text()?)?,
                2 => set_once(version, &field, field.text()?)?,
                3 => set_once(&mut is_reply, &field, field.number()? != 0)?,
                4 => set_once(&mut public_key, &field, field.bytes()?)?,
                5 => set_once(&mut kind, &field, field.number()?)?,
                6 => set_once(node_id, &field, field.text()?)?,
                7 => set_once(deployment, &field, field.text()?)?,
                8 => set_once(&mut kem, &field, field.bytes()?)?,
                _ => {}
            }
        }
        let [link_id, version, node_id, deployment] = texts.map(Option::unwrap_or_default);
        Ok(Self {
            link_id,
            version,
            is_reply: is_reply.unwrap_or_default(),
            public_key: public_key.unwrap_or_default(),
            kind: ConnectionKind::from_number(kind.unwrap_or_default()),
            node_id,
            deployment,
            kem,
        })
    }

    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_nested(5, &mut out, |out| {
            put_nested(1, out, |out| {
                put_bytes(1, self.link_id.as_bytes(), out);
                put_bytes(2, self.version.as_bytes(), out);
                put_number(3, self.is_reply.into(), out);
                put_bytes(4, self.public_key, out);
                put_number(5, self.kind.number().into(), out);
                put_bytes(6, self.node_id.as_bytes(), out);
                put_bytes(7, self.deployment.as_bytes(), out);
                if let Some(kem) = self.kem {
                    put_bytes(8, kem, out);
                }
            });
        });
        out
    }
}
