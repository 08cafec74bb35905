//! Link negotiation between two ends: X25519, then HKDF-SHA256 over the shared secret.
//!
//! ```text
//! ## Connecting => Link
//!    request: link id, version, public key, kind
//!    reply:   the same link id and kind, own version, own public key
//! ```
//!
//! Links without a key are refused, as by the SLIM node in its default configuration.

use std::fmt;

use ring::agreement::{self, EphemeralPrivateKey, PublicKey, UnparsedPublicKey, X25519};
use ring::rand::SystemRandom;

use crate::VERSION;
use crate::mac::MacKey;
use crate::message::Header;
use crate::negotiation::{ConnectionKind, Negotiation};

/// Size of a public key in bytes.
const KEY_SIZE: usize = 32;

/// Maximum size of a link id in bytes. Clients send the 36 characters of a UUID; every MAC of the
/// link covers the id.
const LINK_ID_SIZE_MAX: usize = 256;

/// Reason for refusing a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A reply instead of a request, or a request instead of a reply.
    #[error("the link negotiation has the wrong direction")]
    Direction,
    /// The size of the link id is not valid.
    #[error("the link id has {0} bytes, it must have 1 to {LINK_ID_SIZE_MAX}")]
    LinkId(usize),
    /// The reply has another link id.
    #[error("the reply has another link id")]
    OtherLink,
    /// The public key has the wrong size.
    #[error("the public key has {0} bytes, it must have {KEY_SIZE}")]
    KeySize(usize),
    /// The public key yields no shared secret.
    #[error("the public key is not valid")]
    Key,
    /// The peer requires ML-KEM.
    #[error("links with ML-KEM-768 are not supported")]
    PostQuantum,
    /// The peer is a replica of a deployment.
    #[error("this node does not replicate a SLIM deployment")]
    Replica,
    /// The system's random generator failed.
    #[error("the system's random generator failed")]
    Random,
}

/// A negotiated link.
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

    /// Creates a link with a given shared secret.
    #[cfg(test)]
    pub(crate) fn with_secret(secret: &[u8], id: &str) -> Self {
        Self {
            id: id.to_owned(),
            kind: ConnectionKind::Edge,
            mac: MacKey::derive(secret, id).expect("a key of 32 bytes"),
        }
    }

    /// Returns the id, which the connecting end chose.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the kind of peer that the connecting end requested.
    pub fn kind(&self) -> ConnectionKind {
        self.kind
    }

    /// Verifies the header's MAC. Overwrites `scratch`.
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

/// Result of accepting a link.
#[derive(Debug)]
pub struct Accepted {
    /// Negotiated link.
    pub link: Link,
    /// Reply for the other end.
    pub reply: Vec<u8>,
}

impl Accepted {
    /// Accepts a request as the node `node_id`.
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

/// The connecting end of a link, waiting for the reply.
pub struct Initiator {
    link_id: String,
    secret: EphemeralPrivateKey,
    public: PublicKey,
}

impl Initiator {
    /// Starts the negotiation of a link.
    pub fn new(link_id: &str, random: &SystemRandom) -> Result<Self, Refused> {
        let (secret, public) = key_pair(random)?;
        Ok(Self {
            link_id: link_id.to_owned(),
            secret,
            public,
        })
    }

    /// Encodes the request of an application.
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

    /// Completes the link with the reply.
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
