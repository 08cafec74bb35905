//! Signatures as Standard Webhooks 1.0 has them (<https://www.standardwebhooks.com>): HMAC-SHA256
//! of `ID.TIMESTAMP.BODY`, in Base64 behind `v1,`; the secret is Base64 behind `whsec_`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::hmac;

/// What stands before a secret.
const PREFIX: &str = "whsec_";

/// The key that a secret stands for.
pub(super) fn key(secret: &str) -> Result<hmac::Key, String> {
    let wrong = || format!("a secret is `{PREFIX}` and 24 to 64 bytes in Base64");
    let text = secret.strip_prefix(PREFIX).ok_or_else(wrong)?;
    let bytes = BASE64_STANDARD.decode(text).map_err(|_| wrong())?;
    match (24..=64).contains(&bytes.len()) {
        true => Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
        false => Err(wrong()),
    }
}

/// The value of `webhook-signature`.
pub(super) fn signature(key: &hmac::Key, id: &str, at_s: u64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(format!("{id}.{at_s}.").as_bytes());
    context.update(body);
    format!("v1,{}", BASE64_STANDARD.encode(context.sign()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example that the libraries of Standard Webhooks are tested with.
    #[test]
    fn a_signature_is_what_others_make_of_the_same() {
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
