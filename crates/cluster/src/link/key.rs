//! The key that all nodes of a cluster share.

use std::fmt;

use ring::hmac;

/// Bytes of a proof.
pub(super) const PROOF_SIZE: usize = 32;

/// Bytes of a key at least.
const KEY_SIZE_MIN: usize = 32;

/// The shared key of a cluster.
#[derive(Clone)]
pub struct Key(hmac::Key);

/// A key that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cluster key of {size} bytes is too short (at least {KEY_SIZE_MIN} bytes)")]
pub struct KeyError {
    /// Size in bytes.
    pub size: usize,
}

/// The side of a connection that proves that it knows the key. A proof of one side is none of the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Dialer,
    Listener,
}

impl Key {
    /// Creates a key of at least 32 random bytes.
    pub fn new(bytes: &[u8]) -> Result<Key, KeyError> {
        if bytes.len() < KEY_SIZE_MIN {
            return Err(KeyError { size: bytes.len() });
        }
        Ok(Key(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    /// Derives the seed of the key for TLS: HMAC-SHA256 over a constant.
    pub fn tls_seed(&self) -> [u8; 32] {
        let tag = hmac::sign(&self.0, b"telpher cluster TLS seed");
        let mut seed = [0; 32];
        seed.copy_from_slice(tag.as_ref());
        seed
    }

    /// Proves that a side knows the key: HMAC-SHA256 over the side and both hellos.
    pub(super) fn prove(&self, side: Side, dialer: &[u8], listener: &[u8]) -> [u8; PROOF_SIZE] {
        let tag = hmac::sign(&self.0, &signed(side, dialer, listener));
        let mut proof = [0; PROOF_SIZE];
        proof.copy_from_slice(tag.as_ref());
        proof
    }

    /// Checks the proof of a side, in constant time.
    pub(super) fn is_proof(
        &self,
        proof: &[u8; PROOF_SIZE],
        side: Side,
        dialer: &[u8],
        listener: &[u8],
    ) -> bool {
        hmac::verify(&self.0, &signed(side, dialer, listener), proof).is_ok()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Returns the bytes that a side signs. Hellos have one size, so the parts cannot be confused.
fn signed(side: Side, dialer: &[u8], listener: &[u8]) -> Vec<u8> {
    let name: &[u8] = match side {
        Side::Dialer => b"telpher cluster dialer",
        Side::Listener => b"telpher cluster listener",
    };
    [name, dialer, listener].concat()
}
