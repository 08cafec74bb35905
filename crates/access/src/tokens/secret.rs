//! A token's secret text, which only its owner has, and the fingerprint that the node stores.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{digest, hmac};

/// The prefix of every token, by which people and secret scanners recognise one.
const PREFIX: &str = "tlp_";

const SECRET_SIZE: usize = 32;
const SALT_SIZE: usize = 16;
const HASH_SIZE: usize = 32;

/// Bytes of a token's text.
const TEXT_SIZE: usize = PREFIX.len() + 43;

/// Random bytes that one token takes.
pub const ENTROPY_SIZE: usize = SECRET_SIZE;

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

/// SHA-256 of a token's text. The text holds 256 random bits: neither a salt nor a slow hash would
/// make it harder to find, and a hash without a salt is found in one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Digest([u8; HASH_SIZE]);

impl Digest {
    pub(super) fn of(text: &str) -> Self {
        let mut bytes = [0; HASH_SIZE];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
        Self(bytes)
    }
}

/// The stored form of a secret, sufficient to verify it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fingerprint {
    /// See [`Digest`].
    Digest(Digest),
    /// A salt and the HMAC-SHA-256 of the text under it, as earlier versions kept it.
    Salted {
        salt: [u8; SALT_SIZE],
        hash: [u8; HASH_SIZE],
    },
}

impl Fingerprint {
    /// Returns whether the fingerprint belongs to the text, in constant time.
    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            // Comparing digests may leak timing: a matching prefix of digests reveals nothing about
            // the text.
            Self::Digest(own) => *own == Digest::of(text),
            Self::Salted { salt, hash } => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, salt);
                hmac::verify(&key, text.as_bytes(), hash).is_ok()
            }
        }
    }
}

/// Returns whether a text has the shape of a token.
pub(super) fn is_token(text: &str) -> bool {
    text.len() == TEXT_SIZE && text.starts_with(PREFIX)
}

/// Returns the random bytes that a token's text encodes, in base 64 with the URL-safe alphabet and no
/// padding (RFC 4648, section 5); `None` if the text is not one that a token
/// can have.
pub fn entropy_of(text: &str) -> Option<[u8; ENTROPY_SIZE]> {
    let digits = text.strip_prefix(PREFIX)?;
    let bytes = URL_SAFE_NO_PAD.decode(digits).ok()?;
    bytes.try_into().ok()
}

/// A new secret and its fingerprint.
pub(super) fn generate(entropy: &[u8; ENTROPY_SIZE]) -> (Secret, Fingerprint) {
    let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(entropy));
    let fingerprint = Fingerprint::Digest(Digest::of(&text));
    (Secret(text), fingerprint)
}

/// The fields of a fingerprint in the file, as hexadecimal digits.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) sha256: Option<String>,
    pub(super) salt: Option<String>,
    pub(super) hash: Option<String>,
}

impl From<&Fingerprint> for Fields {
    fn from(fingerprint: &Fingerprint) -> Self {
        match fingerprint {
            Fingerprint::Digest(Digest(bytes)) => Self {
                sha256: Some(hex(bytes)),
                ..Self::default()
            },
            Fingerprint::Salted { salt, hash } => Self {
                salt: Some(hex(salt)),
                hash: Some(hex(hash)),
                ..Self::default()
            },
        }
    }
}

impl Fields {
    /// The fingerprint, if the fields are those of one.
    pub(super) fn read(&self) -> Option<Fingerprint> {
        match (&self.sha256, &self.salt, &self.hash) {
            (Some(sha256), None, None) => Some(Fingerprint::Digest(Digest(unhex(sha256)?))),
            (None, Some(salt), Some(hash)) => Some(Fingerprint::Salted {
                salt: unhex(salt)?,
                hash: unhex(hash)?,
            }),
            _ => None,
        }
    }
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
    fn base64url_matches_rfc_4648() {
        let cases = [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in cases {
            assert_eq!(URL_SAFE_NO_PAD.encode(bytes), text);
        }
        assert_eq!(URL_SAFE_NO_PAD.encode([0xfb, 0xff, 0xfe]), "-__-");
    }

    #[test]
    fn a_text_gives_its_random_bytes_back() {
        for entropy in [[0; ENTROPY_SIZE], [7; ENTROPY_SIZE], [0xff; ENTROPY_SIZE]] {
            let (secret, _) = generate(&entropy);
            assert_eq!(entropy_of(secret.reveal()), Some(entropy));
        }
        let (secret, _) = generate(&[0; ENTROPY_SIZE]);
        let text = secret.reveal();
        for wrong in [
            "",
            "tlp_",
            &text[..46],
            &format!("{text}A"),
            &text.replace("tlp_", "tlp-"),
            &format!("{}+", &text[..46]),
            &format!("{}B", &text[..46]),
        ] {
            assert_eq!(entropy_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn fingerprint_matches_only_its_own_secret() {
        let (secret, fingerprint) = generate(&[7; ENTROPY_SIZE]);
        assert!(is_token(secret.reveal()));
        assert!(fingerprint.matches(secret.reveal()));
        assert!(!fingerprint.matches(""));
        assert!(!fingerprint.matches(&secret.reveal()[..46]));
        let (other, _) = generate(&[8; ENTROPY_SIZE]);
        assert!(!fingerprint.matches(other.reveal()));
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        for text in ["", "tlp_", &secret.reveal()[..46], &"x".repeat(47)] {
            assert!(!is_token(text), "{text}");
        }
    }

    #[test]
    fn a_fingerprint_reads_back_from_its_fields() {
        let (_, digest) = generate(&[9; ENTROPY_SIZE]);
        let salted = Fingerprint::Salted {
            salt: [1; SALT_SIZE],
            hash: [2; HASH_SIZE],
        };
        for fingerprint in [digest, salted] {
            let fields = Fields::from(&fingerprint);
            assert_eq!(fields.read(), Some(fingerprint.clone()));
            let cut = |text: &Option<String>| text.as_ref().map(|text| text[1..].to_owned());
            let wrong = Fields {
                sha256: cut(&fields.sha256),
                salt: fields.salt.clone(),
                hash: cut(&fields.hash),
            };
            assert_eq!(wrong.read(), None);
        }
        assert_eq!(Fields::default().read(), None);
        let both = Fields {
            sha256: Some("00".repeat(HASH_SIZE)),
            salt: Some("00".repeat(SALT_SIZE)),
            hash: Some("00".repeat(HASH_SIZE)),
        };
        assert_eq!(both.read(), None);
        assert_eq!(unhex::<1>("+1"), None);
    }
}
