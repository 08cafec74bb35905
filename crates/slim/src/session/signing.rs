//! Bytes covered by the signatures of a control message: its header, and its payload with its
//! metadata.
//!
//! ```text
//! header  = version 1 (1) | source 2 | destination 3 | identity 4 | type of session 5 | of message 6
//!           | session 7 | message 8, as a message of protocol buffers
//! payload = "slim-payload-v1" | sized(header) | sized(content) | sized(key) sized(value), by keys
//! sized(x) = size 8, big endian | x
//! ```
//!
//! Receivers decode a message and encode it again before verifying, so the signed bytes are in
//! canonical encoding: without zeros and empty texts.

use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey};

use crate::name::Name;
use crate::session::content::{put_number, put_text};

/// Metadata key of the payload's signature, in Base64.
pub(super) const PAYLOAD_SIGNATURE: &str = "slim-payload-sig";

/// Unsigned metadata keys: nodes rewrite the first three, receivers add the last.
const UNSIGNED: [&str; 5] = [
    "traceparent",
    "tracestate",
    "baggage",
    PAYLOAD_SIGNATURE,
    "slim-peer-subject",
];

const PAYLOAD_DOMAIN: &[u8] = b"slim-payload-v1";

/// Header fields covered by a signature.
#[derive(Clone, Copy)]
pub(super) struct SignedFields<'a> {
    pub(super) source: Name<'a>,
    pub(super) destination: Name<'a>,
    pub(super) identity: &'a str,
    /// Session type, message type, session number and message number.
    pub(super) session: [u32; 4],
}

impl SignedFields<'_> {
    /// Returns the bytes covered by the header's signature.
    pub(super) fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(1, 1, &mut out);
        self.source.put(2, &mut out);
        self.destination.put(3, &mut out);
        put_text(4, self.identity, &mut out);
        for (field, number) in (5..).zip(self.session) {
            put_number(field, number.into(), &mut out);
        }
        out
    }
}

/// Returns the bytes covered by the payload's signature.
pub(super) fn payload<'a>(
    header: &[u8],
    content: &[u8],
    metadata: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<u8> {
    let mut out = PAYLOAD_DOMAIN.to_vec();
    put_sized(header, &mut out);
    put_sized(content, &mut out);
    let mut metadata: Vec<_> = metadata
        .filter(|(key, _)| !UNSIGNED.contains(key))
        .collect();
    metadata.sort_unstable();
    for (key, value) in metadata {
        put_sized(key.as_bytes(), &mut out);
        put_sized(value.as_bytes(), &mut out);
    }
    out
}

/// Verifies a signature. A key of 32 bytes is Ed25519, any other a point of P-256.
pub(super) fn is_signed(covered: &[u8], signature: &[u8], public_key: &[u8]) -> bool {
    let is_ed25519 = public_key.len() == 32;
    let verified = match is_ed25519 {
        true => UnparsedPublicKey::new(&ED25519, public_key).verify(covered, signature),
        false => {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, public_key).verify(covered, signature)
        }
    };
    verified.is_ok()
}

fn put_sized(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
}
