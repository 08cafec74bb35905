//! The broker's side of a SCRAM exchange (RFC 5802, section 5).
//!
//! ```text
//! client  n,,n=user,r=NONCE
//! broker  r=NONCE+OURS,s=SALT,i=ROUNDS
//! client  c=biws,r=NONCE+OURS,p=PROOF
//! broker  v=SIGNATURE
//! ```
//!
//! An unknown user, or one without a credential for this mechanism, is refused after its proof,
//! like a wrong password.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use topics::{Credential, Hash, ITERATIONS_MIN, User};

use super::credential::{SALT_SIZE, digest, is_same, sign};

/// The reason why an exchange fails. The client is only told that it has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// The message does not follow the RFC, or uses an unsupported part of it (channel binding,
    /// authorization as another user).
    #[error("malformed SCRAM message")]
    Malformed,
    /// The user is unknown, or the password is wrong.
    #[error("unknown user or wrong password")]
    Credentials,
}

/// The broker's message, and the state for the check of the proof.
#[derive(Debug)]
pub struct Challenge {
    hash: Hash,
    user: Option<Arc<User>>,
    /// `client-first-message-bare,server-first-message`
    said: String,
    nonce: String,
}

/// The result of a successful exchange: the user, and the broker's own proof.
#[derive(Debug)]
pub struct Proven {
    /// The user.
    pub user: Arc<User>,
    /// The broker's last message, which proves that it knows the credential.
    pub message: String,
}

impl Challenge {
    /// Answers a client's first message. `secret` determines the salt of an unknown user, which is
    /// always the same for the same name.
    pub fn new(
        hash: Hash,
        first: &[u8],
        find: impl FnOnce(&str) -> Option<Arc<User>>,
        our_nonce: &str,
        secret: &[u8],
    ) -> Result<(Self, String), Failed> {
        let first = std::str::from_utf8(first).map_err(|_| Failed::Malformed)?;
        let bare = first
            .strip_prefix("n,,")
            .or_else(|| first.strip_prefix("y,,"))
            .ok_or(Failed::Malformed)?;
        let mut fields = bare.split(',');
        let name = field(fields.next(), "n=")?;
        let nonce = field(fields.next(), "r=")?;
        // Extensions may follow: none is supported, and none changes the proof.
        if nonce.is_empty() || nonce.len() > 256 {
            return Err(Failed::Malformed);
        }
        let name = name.replace("=2C", ",").replace("=3D", "=");
        let user = find(&name);
        let (salt, iterations) = match user.as_ref().and_then(|it| it.credential(hash)) {
            Some(Credential {
                salt, iterations, ..
            }) => (salt.clone(), *iterations),
            None => {
                let mut salt = sign(hash, secret, name.as_bytes());
                salt.truncate(SALT_SIZE);
                (salt, ITERATIONS_MIN)
            }
        };
        let nonce = format!("{nonce}{our_nonce}");
        let salt = STANDARD.encode(salt);
        let message = format!("r={nonce},s={salt},i={iterations}");
        let said = format!("{bare},{message}");
        let challenge = Self {
            hash,
            user,
            said,
            nonce,
        };
        Ok((challenge, message))
    }

    /// Checks the proof.
    pub fn judge(self, last: &[u8]) -> Result<Proven, Failed> {
        let last = std::str::from_utf8(last).map_err(|_| Failed::Malformed)?;
        let (unproven, proof) = last.rsplit_once(",p=").ok_or(Failed::Malformed)?;
        let mut fields = unproven.split(',');
        let binding = field(fields.next(), "c=")?;
        // `n,,` and `y,,`: no channel binding. librdkafka repeats its own nonce before both, which
        // Kafka's brokers accept.
        let is_ours = field(fields.next(), "r=")?.ends_with(&self.nonce);
        if !matches!(binding, "biws" | "eSws") || !is_ours {
            return Err(Failed::Malformed);
        }
        let proof = STANDARD.decode(proof).map_err(|_| Failed::Malformed)?;
        let user = self.user.ok_or(Failed::Credentials)?;
        let said = format!("{},{unproven}", self.said);
        let hash = self.hash;
        let kept = user.credential(hash).ok_or(Failed::Credentials)?;
        let mut key = sign(hash, &kept.stored_key, said.as_bytes());
        if key.len() != proof.len() {
            return Err(Failed::Malformed);
        }
        for (byte, proof) in key.iter_mut().zip(proof) {
            *byte ^= proof;
        }
        if !is_same(&digest(hash, &key), &kept.stored_key) {
            return Err(Failed::Credentials);
        }
        let signature = sign(hash, &kept.server_key, said.as_bytes());
        let message = format!("v={}", STANDARD.encode(signature));
        Ok(Proven { user, message })
    }
}

fn field<'a>(field: Option<&'a str>, name: &str) -> Result<&'a str, Failed> {
    let field = field.and_then(|field| field.strip_prefix(name));
    field.ok_or(Failed::Malformed)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;
    use crate::credential;

    fn user(name: &str, password: &str, salt: &[u8]) -> Arc<User> {
        let iterations = NonZeroU32::new(4_096).unwrap();
        let of = |hash| credential(hash, password, salt, iterations);
        let user = User::new(name).with(Hash::Sha256, of(Hash::Sha256));
        Arc::new(user.with(Hash::Sha512, of(Hash::Sha512)))
    }

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_example_exchange_of_the_rfc_succeeds() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let (challenge, message) = Challenge::new(
            Hash::Sha256,
            b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            |name| (name == "user").then(|| user("user", "pencil", &salt)),
            "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            b"",
        )
        .unwrap();
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        assert_eq!(
            message,
            format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
        );
        let last = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let proven = challenge.judge(last.as_bytes()).unwrap();
        assert_eq!(
            proven.message,
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
        assert_eq!(proven.user.name, "user");
    }

    #[test]
    fn a_wrong_password_and_an_unknown_user_fail_alike() {
        let first = b"n,,n=user,r=abc".as_slice();
        for known in [true, false] {
            let find = |name: &str| known.then(|| user(name, "pencil", b"salt"));
            let (challenge, message) =
                Challenge::new(Hash::Sha512, first, find, "def", b"secret").unwrap();
            assert!(message.ends_with(",i=4096"), "{message}");
            let proof = STANDARD.encode([0; 64]);
            let last = format!("c=biws,r=abcdef,p={proof}");
            let failed = challenge.judge(last.as_bytes()).unwrap_err();
            assert_eq!(failed, Failed::Credentials);
        }
    }

    #[test]
    fn malformed_scram_messages_are_refused() {
        for first in [
            "",
            "n,,",
            "p=tls-unique,,n=a,r=b",
            "n,,n=a",
            "n,,r=b,n=a",
            "n,,n=a,r=",
        ] {
            let made = Challenge::new(Hash::Sha256, first.as_bytes(), |_| None, "x", b"");
            assert_eq!(made.unwrap_err(), Failed::Malformed, "{first}");
        }
        for last in [
            "",
            "p=",
            "c=biws,r=bx",
            "c=biws,r=other,p=AA==",
            "c=x,r=bx,p=AA==",
        ] {
            let first = b"n,,n=a,r=b";
            let (challenge, _) = Challenge::new(Hash::Sha256, first, |_| None, "x", b"").unwrap();
            assert_eq!(
                challenge.judge(last.as_bytes()).unwrap_err(),
                Failed::Malformed,
                "{last}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_messages_authenticate_without_the_password(
            first in "[ny],,n=[ab=,]{0,4},r=[a-z]{0,4}|\\PC{0,40}",
            last in "c=(biws|eSws),r=[a-z]{0,4}x,p=[A-Za-z0-9+/]{0,88}={0,2}|\\PC{0,60}",
        ) {
            let kept = Credential {
                salt: b"salt".to_vec(),
                iterations: ITERATIONS_MIN,
                stored_key: vec![2; Hash::Sha256.size()],
                server_key: vec![3; Hash::Sha256.size()],
            };
            let known = Arc::new(User::new("a").with(Hash::Sha256, kept));
            let find = |name: &str| (name == "a").then_some(known);
            if let Ok((challenge, _)) = Challenge::new(Hash::Sha256, first.as_bytes(), find, "x", b"") {
                prop_assert!(challenge.judge(last.as_bytes()).is_err());
            }
        }
    }
}
