//! Who may come in.

/// What a client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything an agent does.
    Agent,
    /// That, and administration.
    Admin,
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
    /// The role of whoever presents `token`, empty for none.
    fn admit(&self, token: &str) -> Result<Role, Refused>;
}

/// Lets everybody do everything: a laptop, loopback only.
#[derive(Clone, Copy, Debug)]
pub struct Open;

impl Gate for Open {
    fn admit(&self, _: &str) -> Result<Role, Refused> {
        Ok(Role::Admin)
    }
}
