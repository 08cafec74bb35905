//! Authentication by SASL: the exchange of SaslHandshake and SaslAuthenticate.
//!
//! ## Nothing => Chosen => (Challenged =>) Over
//!
//! With `PLAIN` a client sends a user's password, or a token of the node instead of a password;
//! with `SCRAM-SHA-256` and `SCRAM-SHA-512` it proves that it knows a user's password.

use std::sync::Arc;

use access::tokens::Token;
use access::{Forbidden, Principal};
use door::{Pass, Refused, Role};
use model::Name;
use scram::{Challenge, Failed};
use scram::{has_password, waste};
use topics::{Hash, User};

use super::listener::Door;

/// A SASL mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mechanism {
    Plain,
    Scram(Hash),
}

impl Mechanism {
    const ALL: [(&str, Self); 3] = [
        ("PLAIN", Self::Plain),
        (Hash::Sha256.name(), Self::Scram(Hash::Sha256)),
        (Hash::Sha512.name(), Self::Scram(Hash::Sha512)),
    ];

    /// Returns the mechanism of this name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(it, _)| *it == name)
            .map(|(_, mechanism)| mechanism)
    }

    /// Returns the names of the usable mechanisms: without users, SCRAM cannot succeed.
    pub(super) fn offered(has_users: bool) -> impl Iterator<Item = &'static str> {
        let all = Self::ALL.into_iter();
        all.filter(move |(_, it)| has_users || *it == Self::Plain)
            .map(|(name, _)| name)
    }
}

/// The state of the exchange.
#[derive(Debug, Default)]
pub(super) enum Exchange {
    /// The client has sent nothing.
    #[default]
    Nothing,
    /// The client has chosen a mechanism.
    Chosen(Mechanism),
    /// The broker has sent its message and waits for the proof.
    Challenged(Box<Challenge>),
    /// The exchange has ended: the client was admitted, or the connection is to be closed.
    Over,
}

/// The identity that a client has proven.
#[derive(Debug)]
pub(super) struct Identity {
    /// The name that the client claims or has proven, if it is a valid Telpher name.
    pub(super) name: Option<Name>,
    pub(super) principal: Principal,
    pub(super) token: Option<Arc<Token>>,
    /// The user whose password it knows.
    pub(super) user: Option<Arc<User>>,
}

/// The broker's response to a client's message.
#[derive(Debug)]
pub(super) enum SaslStep {
    /// The exchange continues.
    More(String),
    /// The client is authenticated.
    Proven(String, Identity),
    /// A password has to be checked, which takes a while.
    Check(PasswordCheck),
}

/// A password that is to be compared with a user's. A name without a user takes as long, so that
/// clients cannot find out which users exist.
pub(super) struct PasswordCheck {
    user: Option<Arc<User>>,
    password: String,
}

impl PasswordCheck {
    /// Returns the user if the password is correct. It takes as long as a client's own computation.
    pub(super) fn run(self) -> Option<Arc<User>> {
        match self.user {
            Some(user) => has_password(&user, &self.password).then_some(user),
            None => {
                waste(&self.password);
                None
            }
        }
    }
}

impl std::fmt::Debug for PasswordCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordCheck")
    }
}

/// The reason why a client is not admitted. The client is told nothing more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Denied {
    /// The message does not belong to the state of the exchange.
    #[error("unexpected SASL message: no exchange has begun")]
    State,
    /// The proof has failed.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// The token was refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The token does not allow the name.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

impl Exchange {
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// Handles the client's next message.
    pub(super) fn step(&mut self, door: &Door, bytes: &[u8]) -> Result<SaslStep, Denied> {
        match std::mem::replace(self, Self::Over) {
            Self::Nothing | Self::Over => Err(Denied::State),
            Self::Chosen(Mechanism::Plain) => plain(door, bytes),
            Self::Chosen(Mechanism::Scram(hash)) => {
                let find = |name: &str| door.users.find(name);
                let nonce = door.secrets.nonce();
                let (challenge, message) =
                    Challenge::new(hash, bytes, find, &nonce, door.secrets.salt())?;
                *self = Self::Challenged(Box::new(challenge));
                Ok(SaslStep::More(message))
            }
            Self::Challenged(challenge) => {
                let proven = challenge.judge(bytes)?;
                Ok(SaslStep::Proven(proven.message, of_user(door, proven.user)))
            }
        }
    }
}

/// `[authzid] NUL user NUL password` (RFC 4616).
fn plain(door: &Door, bytes: &[u8]) -> Result<SaslStep, Denied> {
    let text = std::str::from_utf8(bytes).map_err(|_| Failed::Malformed)?;
    let mut parts = text.split('\0');
    let (Some(as_whom), Some(name), Some(password), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Failed::Malformed.into());
    };
    if !as_whom.is_empty() && as_whom != name {
        return Err(Failed::Malformed.into());
    }
    let check = |user| {
        let password = password.to_owned();
        Ok(SaslStep::Check(PasswordCheck { user, password }))
    };
    if let Some(user) = door.users.find(name) {
        return check(Some(user));
    }
    let pass = match door.gate.admit(password) {
        // Any token passes where none is required, unless there are users.
        Ok(pass) if pass.token().is_some() || !door.users.is_any() => pass,
        Ok(_) => return check(None),
        Err(_) if door.users.is_any() => return check(None),
        Err(refused) => return Err(refused.into()),
    };
    let (name, principal) = named(&pass, name)?;
    let identity = Identity {
        name,
        principal,
        token: pass.token().cloned(),
        user: None,
    };
    Ok(SaslStep::Proven(String::new(), identity))
}

/// Returns the name that a client claims with its token, and its principal under that name. The
/// token's own name, or none, claims nothing.
fn named(pass: &Pass, name: &str) -> Result<(Option<Name>, Principal), Denied> {
    let principal = pass.principal();
    let is_own = pass.token().is_some_and(|token| token.name == name);
    match Name::parse(name) {
        Ok(claimed) if !is_own => {
            let principal = principal.claim(&claimed)?;
            Ok((Some(claimed), principal))
        }
        _ => Ok((None, principal.clone())),
    }
}

/// Returns the identity of a user that has proven its password. While no token is required, its
/// role is that of clients without a token on the other listeners; otherwise it is an agent.
pub(super) fn of_user(door: &Door, user: Arc<User>) -> Identity {
    let role = door.gate.admit("").map_or(Role::Agent, |pass| pass.role());
    Identity {
        name: Name::parse(&user.name).ok(),
        principal: Principal::of_user(&user.name, role),
        token: None,
        user: Some(user),
    }
}
