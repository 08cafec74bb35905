//! Who may come in.

use std::sync::Arc;

use node::tokens::Token;

/// What a client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything an agent does.
    Agent,
    /// That, and administration.
    Admin,
}

/// Leave to come in.
#[derive(Clone, Debug)]
pub struct Pass {
    /// What its bearer may do.
    pub role: Role,
    /// What was shown for it, where a token is required. Whoever stays after it was revoked is sent
    /// away by whoever finds out: a door only hands it on.
    pub token: Option<Arc<Token>>,
}

/// Why a client may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Tokens are required and there was none.
    #[error("a token is required")]
    Missing,
    /// The token is unknown or revoked.
    #[error("the token is unknown or revoked")]
    Unknown,
    /// The tokens could not be checked: nobody comes in.
    #[error("tokens cannot be checked at the moment")]
    Broken,
}

/// Judges tokens. Every door asks the same one.
pub trait Gate: Send + Sync {
    /// Judges whoever presents `token`, empty for none.
    fn admit(&self, token: &str) -> Result<Pass, Refused>;
}

/// Lets everybody do everything: a laptop, loopback only.
#[derive(Clone, Copy, Debug)]
pub struct Open;

impl Gate for Open {
    fn admit(&self, _: &str) -> Result<Pass, Refused> {
        Ok(Pass {
            role: Role::Admin,
            token: None,
        })
    }
}
