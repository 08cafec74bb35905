//! `Identity`: tokens that only holders of the shared secret can make.
//!
//! ```text
//! subject : unix seconds : nonce : claims : HMAC-SHA256(secret, what stands before)
//! claims = {"pubkey": key}         nonce, claims and MAC are base64 without padding, for URLs
//! ```
//!
//! The key in the claims is the key with which the holder signs control messages. The instance id
//! of the holder's name is the XXH3 (128 bits) of the subject.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair};
use twox_hash::XxHash3_128;

/// Minimum size of the secret in bytes, as in the libraries.
pub const SECRET_SIZE_MIN: usize = 32;

/// Validity of a token and maximum clock skew in seconds, as in the libraries.
const VALIDITY_S: u64 = 3600;
const SKEW_S: u64 = 5;

const NONCE_SIZE: usize = 12;

/// Number of reserved ids at the end of the range; the largest one means *any*.
const RESERVED_IDS: u128 = 50;

/// Random bytes for one [`Identity`].
pub type Entropy = [u8; 48];

/// Error: the secret is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shared secret has {0} bytes, it must have at least {SECRET_SIZE_MIN}")]
pub struct ShortSecret(pub usize);

/// Reason for rejecting a token or a signed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// The MAC of the link is wrong; reported by the owner of the link.
    #[error("the MAC of the header is wrong for this link")]
    Mac,
    /// The token is malformed.
    #[error("the identity is not a shared-secret token")]
    Form,
    /// The token was made with another secret.
    #[error("the identity was made with another secret")]
    Secret,
    /// The token is too old or from the future.
    #[error("the identity has expired")]
    Expired,
    /// The token has no valid public key.
    #[error("the identity has no valid public key")]
    Key,
    /// The signature of a control message does not match the token's key.
    #[error("the signature does not match the key of the identity")]
    Signature,
}

/// An identity of a holder of the shared secret.
pub struct Identity {
    secret: hmac::Key,
    subject: String,
    claims: String,
    keys: Ed25519KeyPair,
    nonce: [u8; NONCE_SIZE],
}

/// Verified contents of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bearer<'a> {
    pub(super) subject: &'a str,
    claims: &'a str,
}

impl Identity {
    /// Creates a new identity with a readable name.
    pub fn new(name: &str, secret: &[u8], entropy: &Entropy) -> Result<Self, ShortSecret> {
        if secret.len() < SECRET_SIZE_MIN {
            return Err(ShortSecret(secret.len()));
        }
        let (seed, rest) = entropy.split_at(32);
        let (suffix, start) = rest.split_at(6);
        let mut nonce = [0; NONCE_SIZE];
        nonce[..start.len()].copy_from_slice(start);
        let keys = Ed25519KeyPair::from_seed_unchecked(seed).expect("32 bytes are a seed");
        let key = STANDARD.encode(keys.public_key().as_ref());
        let claims = format!(r#"{{"pubkey":"{key}"}}"#);
        // A colon or white space would end the subject.
        let name = name.replace(|sign: char| sign == ':' || sign.is_whitespace(), "-");
        Ok(Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret),
            subject: format!("{name}_{}", URL_SAFE_NO_PAD.encode(suffix)),
            claims: URL_SAFE_NO_PAD.encode(claims),
            keys,
            nonce,
        })
    }

    /// Returns the instance id of the identity's names.
    pub fn name_id(&self) -> u128 {
        name_id(&self.subject)
    }

    /// Makes a token with a new nonce.
    pub(super) fn token(&mut self, unix_s: u64) -> String {
        let count = u16::from_be_bytes([self.nonce[10], self.nonce[11]]);
        let (next, is_over) = count.overflowing_add(1);
        self.nonce[10..].copy_from_slice(&next.to_be_bytes());
        if is_over {
            self.carry();
        }
        let nonce = URL_SAFE_NO_PAD.encode(self.nonce);
        let mut token = format!("{}:{unix_s}:{nonce}:{}", self.subject, self.claims);
        let mac = hmac::sign(&self.secret, token.as_bytes());
        token.push(':');
        URL_SAFE_NO_PAD.encode_string(mac.as_ref(), &mut token);
        token
    }

    fn carry(&mut self) {
        for byte in self.nonce[..10].iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return;
            }
        }
    }

    /// Verifies a token and its time.
    pub(super) fn verify<'a>(&self, token: &'a str, unix_s: u64) -> Result<Bearer<'a>, Untrusted> {
        let (covered, mac) = token.rsplit_once(':').ok_or(Untrusted::Form)?;
        let parts: Vec<_> = covered.splitn(5, ':').collect();
        let [subject, made, _, claims] = parts[..] else {
            return Err(Untrusted::Form);
        };
        let mac = URL_SAFE_NO_PAD.decode(mac).map_err(|_| Untrusted::Form)?;
        hmac::verify(&self.secret, covered.as_bytes(), &mac).map_err(|_| Untrusted::Secret)?;
        let made: u64 = made.parse().map_err(|_| Untrusted::Form)?;
        let is_known = made.saturating_sub(unix_s) <= SKEW_S;
        if !is_known || unix_s.saturating_sub(made) > VALIDITY_S {
            return Err(Untrusted::Expired);
        }
        Ok(Bearer { subject, claims })
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.keys.sign(bytes).as_ref().to_vec()
    }
}

impl Bearer<'_> {
    /// Returns the holder's public key.
    pub(super) fn public_key(&self) -> Result<Vec<u8>, Untrusted> {
        let claims = URL_SAFE_NO_PAD.decode(self.claims).ok();
        let claims = claims.and_then(|bytes| String::from_utf8(bytes).ok());
        let key = claims.as_deref().and_then(text_of_pubkey);
        let key = key.and_then(|key| STANDARD.decode(key).ok());
        key.ok_or(Untrusted::Key)
    }
}

/// Returns the value of `pubkey` in a JSON object; Base64 needs no escapes. The author of the
/// claims holds the secret, so a crafted object gains nothing.
fn text_of_pubkey(claims: &str) -> Option<&str> {
    let (_, rest) = claims.split_once("\"pubkey\"")?;
    let rest = rest.trim_start().strip_prefix(':')?;
    let rest = rest.trim_start().strip_prefix('"')?;
    rest.split_once('"').map(|(key, _)| key)
}

/// Returns the instance id for a subject.
pub(super) fn name_id(subject: &str) -> u128 {
    let id = XxHash3_128::oneshot(subject.as_bytes());
    let first_reserved = u128::MAX - RESERVED_IDS;
    if id < first_reserved {
        id
    } else {
        id % first_reserved
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}
