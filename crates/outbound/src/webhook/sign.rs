//! Signatures of Standard Webhooks 1.0 (<https://www.standardwebhooks.com>): HMAC-SHA256 of
//! `ID.TIMESTAMP.BODY`, in Base64 after `v1,`. A secret is Base64 after `whsec_`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::hmac;

/// Prefix of a secret.
const PREFIX: &str = "whsec_";

/// Parses a secret.
pub(super) fn key(secret: &str) -> Result<hmac::Key, String> {
    let wrong = || format!("the secret must be `{PREFIX}` followed by 24 to 64 bytes in Base64");
    let text = secret.strip_prefix(PREFIX).ok_or_else(wrong)?;
    let bytes = BASE64_STANDARD.decode(text).map_err(|_| wrong())?;
    match (24..=64).contains(&bytes.len()) {
        true => Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
        false => Err(wrong()),
    }
}

/// Returns the value of the header `webhook-signature`.
pub(super) fn signature(key: &hmac::Key, id: &str, at_s: u64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(format!("{id}.{at_s}.").as_bytes());
    context.update(body);
    format!("v1,{}", BASE64_STANDARD.encode(context.sign()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example from the test suite of the Standard Webhooks libraries.
    #[test]
    fn a_signature_equals_the_standard_webhooks_example() {
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        assert_eq!(
            signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn secrets_that_are_too_short_or_no_base64_are_refused() {
        for secret in [
            "",
            "whsec_",
            "whsec_AAAA",
            "whsec_%%",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            assert!(key(secret).is_err(), "{secret}");
        }
    }
}
