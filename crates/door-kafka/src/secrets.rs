//! Cryptographically secure random bytes for authentication.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

const SIZE: usize = 24;

/// A source of random bytes, and a fixed salt for this process.
#[derive(Debug)]
pub(super) struct Secrets {
    source: SystemRandom,
    salt: [u8; SIZE],
}

impl Secrets {
    pub(super) fn new() -> Self {
        let source = SystemRandom::new();
        let salt = random(&source);
        Self { source, salt }
    }

    /// Returns a new random text without commas.
    pub(super) fn nonce(&self) -> String {
        STANDARD_NO_PAD.encode(random(&self.source))
    }

    /// Returns the secret for the salts of unknown users.
    pub(super) fn salt(&self) -> &[u8] {
        &self.salt
    }
}

fn random(source: &SystemRandom) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    source
        .fill(&mut bytes)
        .expect("the system has random bytes from its start");
    bytes
}
