//! Authentication by JSON Web Tokens of another issuer.
//!
//! A key accepts the algorithms of its own family only: a public key is never used as a secret.
//! `ring` checks the signatures.

use std::fmt;
use std::time::Duration;

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::{Error, ErrorKind, Result, new_error};
use jsonwebtoken::signature::{Error as Mismatch, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use ring::{hmac, signature as public};
use serde::Deserialize;

/// The shortest secret, in bytes: a shorter one could be guessed.
const SECRET_SIZE_MIN: usize = 32;

/// The tolerated difference between the issuer's clock and ours.
const LEEWAY_MS: f64 = 60_000.0;

/// The reason why a key is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwtKeyError {
    /// The text begins like PEM, but has no supported public key.
    #[error("the PEM contains no public key of RSA, P-256, P-384 or Ed25519")]
    Pem,
    /// The secret is too short; its length is given.
    #[error("the secret has {0} bytes (at least {SECRET_SIZE_MIN} are needed)")]
    Short(usize),
}

/// The key and the required claims of tokens.
pub struct Jwt {
    key: DecodingKey,
    validation: Validation,
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt").finish_non_exhaustive()
    }
}

/// The claims. Times are seconds since 1970, with or without fractions (RFC 7519, 2).
#[derive(Deserialize)]
struct Claims {
    sub: String,
    exp: f64,
    nbf: Option<f64>,
}

/// The bearer of a valid token.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bearer {
    pub(super) subject: String,
    /// The time until the token expires.
    pub(super) time_left: Duration,
}

impl Jwt {
    /// Accepts tokens that are signed with `key`: a public key as PEM, or a secret. They need an
    /// expiry and a subject, and also the issuer and the audience if those are given.
    pub fn new(
        key: &[u8],
        issuer: Option<&str>,
        audience: Option<&str>,
    ) -> std::result::Result<Self, JwtKeyError> {
        let key = read_key(key.trim_ascii())?;
        let mut validation = Validation::new_for_family(key.family());
        let mut required = vec!["exp", "sub"];
        if let Some(issuer) = issuer {
            validation.set_issuer(&[issuer]);
            required.push("iss");
        }
        if let Some(audience) = audience {
            validation.set_audience(&[audience]);
            required.push("aud");
        }
        validation.validate_aud = audience.is_some();
        // The expiry is checked below, with the node's clock.
        validation.validate_exp = false;
        validation.set_required_spec_claims(&required);
        // An error means that this provider is installed already.
        let _ = PROVIDER.install_default();
        Ok(Self { key, validation })
    }

    /// Checks a token at `now_ms`, in milliseconds since 1970, and returns its bearer.
    pub(super) fn bearer(&self, token: &str, now_ms: u64) -> Result<Bearer> {
        let decoded = decode::<Claims>(token, &self.key, &self.validation)?;
        let Claims { sub, exp, nbf } = decoded.claims;
        let now_ms = now_ms as f64;
        if nbf.is_some_and(|begin| begin * 1000.0 > now_ms + LEEWAY_MS) {
            return Err(new_error(ErrorKind::ImmatureSignature));
        }
        let left_ms = exp * 1000.0 + LEEWAY_MS - now_ms;
        if left_ms <= 0.0 {
            return Err(new_error(ErrorKind::ExpiredSignature));
        }
        Ok(Bearer {
            subject: sub,
            // A too large number becomes the longest duration.
            time_left: Duration::from_millis(left_ms as u64),
        })
    }
}

/// Returns whether the text may be a JWT: it has two dots.
pub(super) fn is_jwt(shown: &str) -> bool {
    shown.bytes().filter(|byte| *byte == b'.').count() == 2
}

fn read_key(key: &[u8]) -> std::result::Result<DecodingKey, JwtKeyError> {
    if key.starts_with(b"-----BEGIN") {
        let read = DecodingKey::from_rsa_pem(key)
            .or_else(|_| DecodingKey::from_ec_pem(key))
            .or_else(|_| DecodingKey::from_ed_pem(key));
        return read.map_err(|_| JwtKeyError::Pem);
    }
    match key.len() {
        SECRET_SIZE_MIN.. => Ok(DecodingKey::from_secret(key)),
        size => Err(JwtKeyError::Short(size)),
    }
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(new_error(ErrorKind::InvalidAlgorithm)),
    verifier_factory: verifier,
    jwk_utils: JwkUtils::new_unimplemented(),
};

struct Check {
    algorithm: Algorithm,
    key: Key,
}

enum Key {
    Secret(hmac::Key),
    Public(public::UnparsedPublicKey<Vec<u8>>),
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let secret = |hash| {
        let secret = key.try_get_hmac_secret()?;
        Ok::<_, Error>(Key::Secret(hmac::Key::new(hash, secret)))
    };
    let signed = |by: &'static dyn public::VerificationAlgorithm| {
        let bytes = key.as_bytes().to_vec();
        Ok(Key::Public(public::UnparsedPublicKey::new(by, bytes)))
    };
    let key = match algorithm {
        Algorithm::HS256 => secret(hmac::HMAC_SHA256),
        Algorithm::HS384 => secret(hmac::HMAC_SHA384),
        Algorithm::HS512 => secret(hmac::HMAC_SHA512),
        Algorithm::RS256 => signed(&public::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => signed(&public::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => signed(&public::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => signed(&public::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => signed(&public::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => signed(&public::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => signed(&public::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => signed(&public::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => signed(&public::ED25519),
    }?;
    let algorithm = *algorithm;
    Ok(Box::new(Check { algorithm, key }))
}

impl Verifier<Vec<u8>> for Check {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Mismatch> {
        let verified = match &self.key {
            Key::Secret(key) => hmac::verify(key, message, signature),
            Key::Public(key) => key.verify(message, signature),
        };
        verified.map_err(|_| Mismatch::new())
    }
}

impl JwtVerifier for Check {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests;
