//! Message authentication code (MAC) of a header, with the key of the link.
//!
//! It covers the link id, both names, the identity, the fan-out and the fields of the hop. It does
//! not cover the version, the payload or the number of the incoming connection.

use ring::{hkdf, hmac};

use crate::message::Header;
use crate::name::Name;

/// Size of a MAC in bytes.
pub(crate) const MAC_SIZE: usize = 32;

const DOMAIN: &[u8] = b"SLIM-DP-HDR-v1\0";
const KEY_INFO: &[u8] = b"SLIM-DP-inter-node-hmac-v1";

/// MAC key of a link.
pub(crate) struct MacKey {
    key: hmac::Key,
    /// HMAC state after the constant prefix of the link.
    begun: hmac::Context,
    /// Constant prefix of the link.
    beginning: Vec<u8>,
}

impl MacKey {
    /// Derives the key from the shared secret; `None` if the secret is not usable.
    pub(crate) fn derive(secret: &[u8], link_id: &str) -> Option<Self> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, link_id.as_bytes());
        let extracted = salt.extract(secret);
        let key = extracted.expand(&[KEY_INFO], hmac::HMAC_SHA256).ok()?;
        let key = hmac::Key::from(key);
        let mut beginning = DOMAIN.to_vec();
        put_sized(link_id.as_bytes(), &mut beginning);
        let mut begun = hmac::Context::with_key(&key);
        begun.update(&beginning);
        Some(Self {
            key,
            begun,
            beginning,
        })
    }

    /// Returns the MAC of bytes from [`MacInput::write`].
    pub(crate) fn sign(&self, covered: &[u8]) -> [u8; MAC_SIZE] {
        let mut context = self.begun.clone();
        context.update(covered);
        let mut mac = [0; MAC_SIZE];
        mac.copy_from_slice(context.sign().as_ref());
        mac
    }

    /// Verifies the header's MAC. Overwrites `scratch`.
    pub(crate) fn verify(&self, header: &Header<'_>, scratch: &mut Vec<u8>) -> bool {
        let Some(mac) = header.header_mac else {
            return false;
        };
        scratch.clear();
        scratch.extend_from_slice(&self.beginning);
        MacInput::received(header).write(scratch);
        hmac::verify(&self.key, scratch, mac).is_ok()
    }
}

/// Fields covered by a MAC, after the prefix of the link.
pub(crate) struct MacInput<'a> {
    pub(crate) source: &'a Name<'a>,
    pub(crate) destination: &'a Name<'a>,
    pub(crate) identity: &'a str,
    pub(crate) fanout: u32,
    pub(crate) recv_from: Option<u64>,
    pub(crate) forward_to: Option<u64>,
    pub(crate) error: Option<bool>,
    pub(crate) ttl: u32,
}

impl<'a> MacInput<'a> {
    fn received(header: &'a Header<'a>) -> Self {
        Self {
            source: &header.source,
            destination: &header.destination,
            identity: header.identity,
            fanout: header.fanout,
            recv_from: header.recv_from,
            forward_to: header.forward_to,
            error: header.error,
            ttl: header.ttl,
        }
    }

    /// Returns the fields of an outgoing header, without connection numbers.
    pub(crate) fn forwarded(header: &'a Header<'a>, ttl: u32) -> Self {
        Self {
            recv_from: None,
            forward_to: None,
            ttl,
            ..Self::received(header)
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_name(self.source, out);
        put_name(self.destination, out);
        put_sized(self.identity.as_bytes(), out);
        out.extend_from_slice(&self.fanout.to_le_bytes());
        put_optional(self.recv_from, out);
        put_optional(self.forward_to, out);
        match self.error {
            None => out.push(0),
            Some(error) => out.extend_from_slice(&[1, error.into()]),
        }
        out.extend_from_slice(&self.ttl.to_le_bytes());
    }
}

fn put_name(name: &Name<'_>, out: &mut Vec<u8>) {
    // Presence of the name and of its hashed components.
    out.extend_from_slice(&[1, 1]);
    for component in name.encoded.prefix {
        out.extend_from_slice(&component.to_le_bytes());
    }
    match name.encoded.id {
        None => out.push(0),
        Some(halves) => {
            out.push(1);
            for half in halves {
                out.extend_from_slice(&half.to_le_bytes());
            }
        }
    }
    match name.texts {
        None => out.push(0),
        Some(texts) => {
            out.push(1);
            for text in texts {
                put_sized(text.as_bytes(), out);
            }
        }
    }
}

fn put_sized(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_optional(number: Option<u64>, out: &mut Vec<u8>) {
    match number {
        None => out.push(0),
        Some(number) => {
            out.push(1);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}
