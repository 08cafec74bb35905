//! Two ends agree on a link: X25519, and HKDF-SHA256 over what both know then.
//!
//! ```text
//! ## Connecting => Link
//!    request: link id, version, public key, kind
//!    reply:   the same link id and kind, own version, own public key
//! ```
//!
//! Links without a key are refused, as the SLIM node does unless it is told otherwise.

use std::fmt;

use ring::agreement::{self, EphemeralPrivateKey, PublicKey, UnparsedPublicKey, X25519};
use ring::rand::SystemRandom;

use crate::VERSION;
use crate::mac::MacKey;
use crate::message::Header;
use crate::negotiation::{ConnectionKind, Negotiation};

/// Bytes of a public key.
const KEY_SIZE: usize = 32;

/// Clients send the 36 characters of a UUID; every MAC of the link covers them.
const LINK_ID_SIZE_MAX: usize = 256;

/// Why there is no link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A reply where a request was due, or the other way round.
    #[error("a link negotiation of the wrong direction")]
    Direction,
    /// The id of the link.
    #[error("a link id has 1 to {LINK_ID_SIZE_MAX} bytes, not {0}")]
    LinkId(usize),
    /// The reply is about another link.
    #[error("the reply is about another link")]
    OtherLink,
    /// The size of the public key.
    #[error("a public key has {KEY_SIZE} bytes, not {0}")]
    KeySize(usize),
    /// The public key leads to no secret.
    #[error("the public key is none")]
    Key,
    /// A peer that insists on ML-KEM.
    #[error("links with ML-KEM-768 are not supported")]
    PostQuantum,
    /// A replica of a deployment.
    #[error("this node is no replica of a SLIM deployment")]
    Replica,
    /// The system has no random bytes.
    #[error("the system has no random bytes")]
    Random,
}

/// A link that both ends agreed on.
pub struct Link {
    id: String,
    kind: ConnectionKind,
    mac: MacKey,
}

impl Link {
    fn agree(
        secret: EphemeralPrivateKey,
        with: &[u8],
        id: &str,
        kind: ConnectionKind,
    ) -> Result<Self, Refused> {
        if with.len() != KEY_SIZE {
            return Err(Refused::KeySize(with.len()));
        }
        let with = UnparsedPublicKey::new(&X25519, with);
        let mac = agreement::agree_ephemeral(secret, &with, |shared| MacKey::derive(shared, id));
        let mac = mac.ok().flatten().ok_or(Refused::Key)?;
        Ok(Self {
            id: id.to_owned(),
            kind,
            mac,
        })
    }

    /// A link whose ends share `secret` already.
    #[cfg(test)]
    pub(crate) fn with_secret(secret: &[u8], id: &str) -> Self {
        Self {
            id: id.to_owned(),
            kind: ConnectionKind::Edge,
            mac: MacKey::derive(secret, id).expect("a key of 32 bytes"),
        }
    }

    /// Chosen by whoever connected.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What whoever connected wants to be.
    pub fn kind(&self) -> ConnectionKind {
        self.kind
    }

    /// Whether the header's MAC is this link's. `scratch` is overwritten.
    pub fn verify(&self, header: &Header<'_>, scratch: &mut Vec<u8>) -> bool {
        self.mac.verify(header, scratch)
    }

    pub(crate) fn mac(&self) -> &MacKey {
        &self.mac
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The accepting end of a link.
#[derive(Debug)]
pub struct Accepted {
    /// The link.
    pub link: Link,
    /// The message that tells the other end.
    pub reply: Vec<u8>,
}

impl Accepted {
    /// Agrees to what was asked, as the node `node_id`.
    pub fn new(
        asked: &Negotiation<'_>,
        node_id: &str,
        random: &SystemRandom,
    ) -> Result<Self, Refused> {
        check(asked)?;
        if asked.is_reply {
            return Err(Refused::Direction);
        }
        let (secret, public) = key_pair(random)?;
        let link = Link::agree(secret, asked.public_key, asked.link_id, asked.kind)?;
        let reply = Negotiation {
            version: VERSION,
            is_reply: true,
            public_key: public.as_ref(),
            node_id,
            deployment: "",
            ..*asked
        };
        let reply = reply.encode();
        Ok(Self { link, reply })
    }
}

/// The connecting end of a link that waits for the reply.
pub struct Initiator {
    link_id: String,
    secret: EphemeralPrivateKey,
    public: PublicKey,
}

impl Initiator {
    /// Begins a link.
    pub fn new(link_id: &str, random: &SystemRandom) -> Result<Self, Refused> {
        let (secret, public) = key_pair(random)?;
        Ok(Self {
            link_id: link_id.to_owned(),
            secret,
            public,
        })
    }

    /// The message that asks for it, as an application.
    pub fn request(&self, node_id: &str) -> Vec<u8> {
        let request = Negotiation {
            link_id: &self.link_id,
            version: VERSION,
            is_reply: false,
            public_key: self.public.as_ref(),
            kind: ConnectionKind::Edge,
            node_id,
            deployment: "",
            kem: None,
        };
        request.encode()
    }

    /// Takes the answer.
    pub fn complete(self, reply: &Negotiation<'_>) -> Result<Link, Refused> {
        check(reply)?;
        if !reply.is_reply {
            return Err(Refused::Direction);
        }
        if reply.link_id != self.link_id {
            return Err(Refused::OtherLink);
        }
        Link::agree(self.secret, reply.public_key, reply.link_id, reply.kind)
    }
}

fn check(negotiation: &Negotiation<'_>) -> Result<(), Refused> {
    let size = negotiation.link_id.len();
    if !(1..=LINK_ID_SIZE_MAX).contains(&size) {
        return Err(Refused::LinkId(size));
    }
    if negotiation.kind == ConnectionKind::Peer {
        return Err(Refused::Replica);
    }
    match negotiation.kem {
        Some(kem) if !kem.is_empty() => Err(Refused::PostQuantum),
        _ => Ok(()),
    }
}

fn key_pair(random: &SystemRandom) -> Result<(EphemeralPrivateKey, PublicKey), Refused> {
    let secret = EphemeralPrivateKey::generate(&X25519, random).map_err(|_| Refused::Random)?;
    let public = secret.compute_public_key().map_err(|_| Refused::Random)?;
    Ok((secret, public))
}
