//! Who somebody is: a token that only holders of the shared secret can make.
//!
//! ```text
//! subject : unix seconds : nonce : claims : HMAC-SHA256(secret, what stands before)
//! claims = {"pubkey": key}         nonce, claims and MAC are base64 without padding, for URLs
//! ```
//!
//! The key in the claims is the one that the holder signs control messages with, and the id of the
//! holder's name is the XXH3 (128 bits) of the subject.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair};
use twox_hash::XxHash3_128;

/// The libraries take no shorter secret, in bytes.
pub const SECRET_SIZE_MIN: usize = 32;

/// Seconds that a token is taken for, and that a clock may be ahead: the libraries' own.
const VALIDITY_S: u64 = 3600;
const SKEW_S: u64 = 5;

const NONCE_SIZE: usize = 12;

/// Ids from here on mean something else, the largest of them *any*.
const RESERVED_IDS: u128 = 50;

/// Bytes that nobody can guess, for one [`Identity`].
pub type Entropy = [u8; 48];

/// The secret is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a shared secret has at least {SECRET_SIZE_MIN} bytes, not {0}")]
pub struct ShortSecret(pub usize);

/// Why a token, or a message under it, is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// It does not come over the link that it says, as far as whoever has the link can tell.
    #[error("the header's MAC is not the link's")]
    Mac,
    /// It has not the parts of a token.
    #[error("the identity is no token of a shared secret")]
    Form,
    /// It was made with another secret.
    #[error("the identity was made with another secret")]
    Secret,
    /// It is too old, or from the future.
    #[error("the identity has expired")]
    Expired,
    /// It names no key that signatures could be checked with.
    #[error("the identity names no key")]
    Key,
    /// A control message is not signed by whoever the token names.
    #[error("the message is not signed by whom its identity names")]
    Signature,
}

/// One of those who share a secret.
pub struct Identity {
    secret: hmac::Key,
    subject: String,
    claims: String,
    keys: Ed25519KeyPair,
    nonce: [u8; NONCE_SIZE],
}

/// Who a token names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bearer<'a> {
    pub(super) subject: &'a str,
    claims: &'a str,
}

impl Identity {
    /// Somebody new under a name of people's choice.
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
        // A colon or a blank would end the subject.
        let name = name.replace(|sign: char| sign == ':' || sign.is_whitespace(), "-");
        Ok(Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret),
            subject: format!("{name}_{}", URL_SAFE_NO_PAD.encode(suffix)),
            claims: URL_SAFE_NO_PAD.encode(claims),
            keys,
            nonce,
        })
    }

    /// The id of names of theirs.
    pub fn name_id(&self) -> u128 {
        name_id(&self.subject)
    }

    /// A token that no other message has.
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

    /// Whom a token names, if it is one of this secret and of this time.
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
    /// The key that the holder signs with.
    pub(super) fn public_key(&self) -> Result<Vec<u8>, Untrusted> {
        let claims = URL_SAFE_NO_PAD.decode(self.claims).ok();
        let claims = claims.and_then(|bytes| String::from_utf8(bytes).ok());
        let key = claims.as_deref().and_then(text_of_pubkey);
        let key = key.and_then(|key| STANDARD.decode(key).ok());
        key.ok_or(Untrusted::Key)
    }
}

/// The value of `pubkey` in a JSON object; base64 has no escapes. Whoever made the claims holds the
/// secret, so there is nothing to win by confusing this.
fn text_of_pubkey(claims: &str) -> Option<&str> {
    let (_, rest) = claims.split_once("\"pubkey\"")?;
    let rest = rest.trim_start().strip_prefix(':')?;
    let rest = rest.trim_start().strip_prefix('"')?;
    rest.split_once('"').map(|(key, _)| key)
}

/// The id of the names of whoever tokens call `subject`.
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
