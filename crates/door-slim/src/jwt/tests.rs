use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::*;

const SECRET: &[u8] = b"a-secret-of-at-least-32-characters!!";

fn token(algorithm: &str, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let header = json!({ "alg": algorithm, "typ": "JWT" });
    let part = |value: &Value| BASE64.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(claims));
    let signature = sign(signed.as_bytes());
    format!("{signed}.{}", BASE64.encode(signature))
}

fn with_secret(secret: &[u8]) -> impl FnOnce(&[u8]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    move |bytes| hmac::sign(&key, bytes).as_ref().to_vec()
}

/// The time of the tests, in milliseconds since 1970.
const NOW_MS: u64 = 1_700_000_000_500;

/// Returns the bearer of a token at that time.
fn subject(jwt: &Jwt, token: &str) -> Result<String> {
    Ok(jwt.bearer(token, NOW_MS)?.subject)
}

/// Claims that are valid for a minute.
fn claims() -> Value {
    json!({ "sub": "billing", "exp": 1_700_000_060_u64, "iss": "us", "aud": ["slim"] })
}

/// A public key as PEM, from the bytes before the key itself in its DER (RFC 8410, RFC 5480).
fn pem(head: &[u8], key: &[u8]) -> Vec<u8> {
    let der = base64::engine::general_purpose::STANDARD.encode([head, key].concat());
    format!("-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n").into_bytes()
}

const ED25519: [u8; 12] = [48, 42, 48, 5, 6, 3, 43, 101, 112, 3, 33, 0];
const P256: [u8; 26] = [
    48, 89, 48, 19, 6, 7, 42, 134, 72, 206, 61, 2, 1, 6, 8, 42, 134, 72, 206, 61, 3, 1, 7, 3, 66, 0,
];

#[test]
fn a_token_signed_with_the_secret_yields_its_subject() {
    let jwt = Jwt::new(SECRET, Some("us"), Some("slim")).unwrap();
    let good = token("HS256", &claims(), with_secret(SECRET));
    assert!(is_jwt(&good));
    assert_eq!(subject(&jwt, &good).unwrap(), "billing");
    // A file ends its last line with a newline.
    let jwt = Jwt::new(&[SECRET, b"\n"].concat(), None, None).unwrap();
    assert_eq!(subject(&jwt, &good).unwrap(), "billing");
}

#[test]
fn tokens_with_wrong_claims_or_signatures_are_refused() {
    let jwt = Jwt::new(SECRET, Some("us"), Some("slim")).unwrap();
    for (name, value) in [
        ("exp", json!(1)),
        ("exp", json!("never")),
        ("nbf", json!(1_700_000_061)),
        ("iss", json!("them")),
        ("aud", json!("other")),
        ("sub", Value::Null),
        ("exp", Value::Null),
        ("iss", Value::Null),
        ("aud", Value::Null),
    ] {
        let mut claims = claims();
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        let bad = token("HS256", &claims, with_secret(SECRET));
        assert!(subject(&jwt, &bad).is_err(), "{claims}");
    }
    let forged = token("HS256", &claims(), with_secret(&[7; 32]));
    assert!(subject(&jwt, &forged).is_err());
    let unsigned = token("none", &claims(), |_| Vec::new());
    assert!(subject(&jwt, &unsigned).is_err());
    for nonsense in ["", "..", "a.b.c", "a.b", "x"] {
        assert!(subject(&jwt, nonsense).is_err(), "{nonsense}");
    }
}

#[test]
fn a_token_is_valid_from_nbf_to_exp_within_a_minute() {
    let jwt = Jwt::new(SECRET, None, None).unwrap();
    let left = |claims: Value| {
        let token = token("HS256", &claims, with_secret(SECRET));
        let bearer = jwt.bearer(&token, NOW_MS);
        bearer.map(|bearer| bearer.time_left).ok()
    };
    let until = |exp: Value| left(json!({ "sub": "billing", "exp": exp }));
    let ms = |count| Some(Duration::from_millis(count));
    assert_eq!(until(json!(1_700_000_060)), ms(119_500));
    assert_eq!(until(json!(1_700_000_000.75)), ms(60_250));
    assert_eq!(until(json!(1_699_999_941)), ms(500));
    assert_eq!(until(json!(1_699_999_940)), None);
    assert_eq!(until(json!(1e18)), ms(u64::MAX));
    assert_eq!(until(json!(-1)), None);
    let from = |nbf: Value| left(json!({ "sub": "billing", "exp": 1_700_000_060, "nbf": nbf }));
    assert_eq!(from(json!(1_700_000_060)), ms(119_500));
    assert_eq!(from(json!(1_700_000_061)), None);
}

#[test]
fn public_keys_accept_only_tokens_of_their_own_private_key() {
    let random = SystemRandom::new();
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let public_key = pem(&ED25519, pair.public_key().as_ref());
    let jwt = Jwt::new(&public_key, None, None).unwrap();
    let sign = |bytes: &[u8]| pair.sign(bytes).as_ref().to_vec();
    let good = token("EdDSA", &claims(), sign);
    assert_eq!(subject(&jwt, &good).unwrap(), "billing");
    // A public key must not be accepted as a secret.
    let confused = token("HS256", &claims(), with_secret(&public_key));
    assert!(subject(&jwt, &confused).is_err());

    let by = &public::ECDSA_P256_SHA256_FIXED_SIGNING;
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(by, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(by, pkcs8.as_ref(), &random).unwrap();
    let jwt = Jwt::new(&pem(&P256, pair.public_key().as_ref()), None, None).unwrap();
    let sign = |bytes: &[u8]| pair.sign(&random, bytes).unwrap().as_ref().to_vec();
    assert_eq!(
        subject(&jwt, &token("ES256", &claims(), sign)).unwrap(),
        "billing"
    );
    assert!(subject(&jwt, &good).is_err());
}

#[test]
fn short_secrets_and_invalid_pem_keys_are_refused() {
    assert_eq!(
        Jwt::new(b"short", None, None).unwrap_err(),
        JwtKeyError::Short(5)
    );
    let pem = b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
    assert_eq!(Jwt::new(pem, None, None).unwrap_err(), JwtKeyError::Pem);
}
