//! SCRAM credentials: computed from passwords, which they do not reveal.

use std::num::NonZeroU32;

use ring::{digest, hmac, pbkdf2};
use topics::{Credential, Hash, ITERATIONS_MIN, User};

/// The size of a salt, also of an unknown user's, in bytes.
pub const SALT_SIZE: usize = 16;

/// Computes the credential of a password.
pub fn credential(hash: Hash, password: &str, salt: &[u8], iterations: NonZeroU32) -> Credential {
    let mut salted = vec![0; hash.size()];
    let algorithm = match hash {
        Hash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        Hash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
    };
    pbkdf2::derive(
        algorithm,
        iterations,
        salt,
        password.as_bytes(),
        &mut salted,
    );
    credential_of_salted(hash, &salted, salt, iterations.get())
}

/// Computes the credential of a password that the client has salted.
pub fn credential_of_salted(hash: Hash, salted: &[u8], salt: &[u8], iterations: u32) -> Credential {
    let client_key = sign(hash, salted, b"Client Key");
    Credential {
        salt: salt.to_vec(),
        iterations,
        stored_key: digest(hash, &client_key),
        server_key: sign(hash, salted, b"Server Key"),
    }
}

/// Returns whether this is the user's password. It takes as long as a client's own computation.
pub fn has_password(user: &User, password: &str) -> bool {
    let mut kept = user.credentials();
    kept.next_back().is_some_and(|(hash, kept)| {
        let shown = NonZeroU32::new(kept.iterations)
            .map(|iterations| credential(hash, password, &kept.salt, iterations));
        shown.is_some_and(|shown| is_same(&shown.stored_key, &kept.stored_key))
    })
}

/// Computes as much as [`has_password`] does for a user with the default iterations.
pub fn waste(password: &str) {
    let rounds = NonZeroU32::new(ITERATIONS_MIN).unwrap_or(NonZeroU32::MIN);
    std::hint::black_box(credential(Hash::Sha512, password, &[0; SALT_SIZE], rounds));
}

pub(super) fn digest(hash: Hash, bytes: &[u8]) -> Vec<u8> {
    let algorithm = match hash {
        Hash::Sha256 => &digest::SHA256,
        Hash::Sha512 => &digest::SHA512,
    };
    digest::digest(algorithm, bytes).as_ref().to_vec()
}

pub(super) fn sign(hash: Hash, key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let algorithm = match hash {
        Hash::Sha256 => hmac::HMAC_SHA256,
        Hash::Sha512 => hmac::HMAC_SHA512,
    };
    let key = hmac::Key::new(algorithm, key);
    hmac::sign(&key, bytes).as_ref().to_vec()
}

/// Compares in constant time.
pub(super) fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |differing, (left, right)| differing | (left ^ right))
            == 0
}
