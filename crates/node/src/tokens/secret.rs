//! The secret that its owner holds, and the fingerprint that the node keeps.

use std::fmt;

use ring::hmac;

/// What every token begins with, so that people and scanners of leaked secrets recognise one.
const PREFIX: &str = "tlp_";

const SECRET_SIZE: usize = 32;
const SALT_SIZE: usize = 16;
const HASH_SIZE: usize = 32;

/// Random bytes that one token takes: its secret's and its salt's.
pub const ENTROPY_SIZE: usize = SECRET_SIZE + SALT_SIZE;

/// A token's text, `tlp_` and 43 characters: shown once, then forgotten.
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A salt and the HMAC-SHA-256 of the token's text under it. The text holds 256 random bits, so
/// a slow hash would add nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    salt: [u8; SALT_SIZE],
    hash: [u8; HASH_SIZE],
}

impl Fingerprint {
    /// Whether this is the text's, in a time that does not depend on how nearly.
    pub(super) fn matches(&self, text: &str) -> bool {
        hmac::verify(&key(&self.salt), text.as_bytes(), &self.hash).is_ok()
    }

    pub(super) fn to_hex(&self) -> (String, String) {
        (hex(&self.salt), hex(&self.hash))
    }

    pub(super) fn from_hex(salt: &str, hash: &str) -> Option<Self> {
        Some(Self {
            salt: unhex(salt)?,
            hash: unhex(hash)?,
        })
    }
}

/// A new secret and its fingerprint.
pub(super) fn generate(entropy: &[u8; ENTROPY_SIZE]) -> (Secret, Fingerprint) {
    let (bytes, rest) = entropy.split_at(SECRET_SIZE);
    let mut salt = [0; SALT_SIZE];
    salt.copy_from_slice(rest);
    let text = format!("{PREFIX}{}", base64_url(bytes));
    let mut hash = [0; HASH_SIZE];
    hash.copy_from_slice(hmac::sign(&key(&salt), text.as_bytes()).as_ref());
    (Secret(text), Fingerprint { salt, hash })
}

fn key(salt: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, salt)
}

/// Base 64 with the URL-safe alphabet and no padding (RFC 4648, section 5).
fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for digit in 0..=chunk.len() {
            let index = (bits >> (18 - 6 * digit)) & 63;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const SIZE: usize>(text: &str) -> Option<[u8; SIZE]> {
    let mut bytes = [0; SIZE];
    let valid = text.len() == 2 * SIZE && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !valid {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_url_is_that_of_rfc_4648() {
        let cases = [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in cases {
            assert_eq!(base64_url(bytes.as_bytes()), text);
        }
        assert_eq!(base64_url(&[0xfb, 0xff, 0xfe]), "-__-");
    }

    #[test]
    fn only_its_own_secret_matches_a_fingerprint() {
        let (secret, fingerprint) = generate(&[7; ENTROPY_SIZE]);
        assert_eq!(secret.reveal().len(), PREFIX.len() + 43);
        assert!(fingerprint.matches(secret.reveal()));
        assert!(!fingerprint.matches(""));
        assert!(!fingerprint.matches(&secret.reveal()[..46]));
        let (other, _) = generate(&[8; ENTROPY_SIZE]);
        assert!(!fingerprint.matches(other.reveal()));
        assert!(!format!("{secret:?}").contains(secret.reveal()));
    }

    #[test]
    fn the_salt_alone_makes_another_hash() {
        let mut entropy = [7; ENTROPY_SIZE];
        let (first, first_print) = generate(&entropy);
        entropy[ENTROPY_SIZE - 1] ^= 1;
        let (second, second_print) = generate(&entropy);
        assert_eq!(first.reveal(), second.reveal());
        assert_ne!(first_print.hash, second_print.hash);
    }

    #[test]
    fn a_fingerprint_reads_back_from_its_hex() {
        let (_, fingerprint) = generate(&[9; ENTROPY_SIZE]);
        let (salt, hash) = fingerprint.to_hex();
        assert_eq!(Fingerprint::from_hex(&salt, &hash), Some(fingerprint));
        assert_eq!(Fingerprint::from_hex(&salt, &hash[1..]), None);
        assert_eq!(
            Fingerprint::from_hex(&salt, &hash.replace(&hash[..2], "+1")),
            None
        );
    }
}
