//! Who may come in by name and password, as SCRAM keeps it: nothing here tells a password.
//!
//! RFC 5802 and RFC 7677; Kafka's mechanisms are KIP-84's.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use ring::{digest, hmac, pbkdf2};

/// A mechanism's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hash {
    /// `SCRAM-SHA-256`
    Sha256,
    /// `SCRAM-SHA-512`
    Sha512,
}

/// Rounds that are asked for, at least: what RFC 7677 and Kafka's tools say.
pub const ITERATIONS_MIN: u32 = 4_096;

/// Rounds, at most: a client has to do them all while it waits.
pub const ITERATIONS_MAX: u32 = 1_000_000;

/// What is kept of a password for one mechanism.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// Random bytes.
    pub salt: Vec<u8>,
    /// Rounds.
    pub iterations: NonZeroU32,
    /// The hash of the key that a client shows.
    pub stored_key: Vec<u8>,
    /// The key that the server shows.
    pub server_key: Vec<u8>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} iterations", self.iterations)
    }
}

/// A user and both credentials of its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// As it says it.
    pub name: String,
    /// For `SCRAM-SHA-256`.
    pub sha256: Credential,
    /// For `SCRAM-SHA-512`, and for a password that is shown as it is.
    pub sha512: Credential,
}

/// The users that there are, at this moment.
pub trait Users: Send + Sync {
    /// Whether there are any: then everybody has to say who it is.
    fn is_any(&self) -> bool;

    /// The user of that name.
    fn find(&self, name: &str) -> Option<Arc<User>>;
}

/// None at all.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Users for Nobody {
    fn is_any(&self) -> bool {
        false
    }

    fn find(&self, _: &str) -> Option<Arc<User>> {
        None
    }
}

impl User {
    /// A user; the salt of each mechanism is its own.
    pub fn new(name: String, password: &str, salts: [&[u8]; 2], iterations: NonZeroU32) -> Self {
        let [sha256, sha512] = salts;
        Self {
            name,
            sha256: Credential::of(Hash::Sha256, password, sha256, iterations),
            sha512: Credential::of(Hash::Sha512, password, sha512, iterations),
        }
    }

    /// What is kept for one mechanism.
    pub fn credential(&self, hash: Hash) -> &Credential {
        match hash {
            Hash::Sha256 => &self.sha256,
            Hash::Sha512 => &self.sha512,
        }
    }

    /// Whether that is the user's password. It takes as long as a client's own computation.
    pub fn has_password(&self, password: &str) -> bool {
        let kept = &self.sha512;
        let shown = Credential::of(Hash::Sha512, password, &kept.salt, kept.iterations);
        is_same(&shown.stored_key, &kept.stored_key)
    }
}

impl Credential {
    /// What is kept of a password.
    pub fn of(hash: Hash, password: &str, salt: &[u8], iterations: NonZeroU32) -> Self {
        let mut salted = vec![0; hash.size()];
        pbkdf2::derive(
            hash.pbkdf2(),
            iterations,
            salt,
            password.as_bytes(),
            &mut salted,
        );
        let client_key = hash.sign(&salted, b"Client Key");
        Self {
            salt: salt.to_vec(),
            iterations,
            stored_key: hash.digest(&client_key),
            server_key: hash.sign(&salted, b"Server Key"),
        }
    }
}

impl Hash {
    pub(super) fn size(self) -> usize {
        match self {
            Self::Sha256 => digest::SHA256_OUTPUT_LEN,
            Self::Sha512 => digest::SHA512_OUTPUT_LEN,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Self::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }

    pub(super) fn digest(self, bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes).as_ref().to_vec()
    }

    pub(super) fn sign(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        };
        let key = hmac::Key::new(algorithm, key);
        hmac::sign(&key, bytes).as_ref().to_vec()
    }
}

/// Whether both are the same; how long it takes does not depend on where they differ.
pub(super) fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |differing, (left, right)| differing | (left ^ right))
            == 0
}
