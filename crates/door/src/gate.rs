//! Authentication: the check of tokens, for all listeners.

use std::sync::Arc;

use access::Principal;
pub use access::tokens::Role;
use access::tokens::Token;
use tokio::sync::watch;

/// The permission of a connected client, until it is revoked. Cheap to clone: all clones are
/// revoked together.
#[derive(Clone, Debug)]
pub struct Pass(Arc<Grant>);

#[derive(Debug)]
struct Grant {
    principal: Principal,
    token: Option<Arc<Token>>,
    is_revoked: watch::Sender<bool>,
}

impl Pass {
    /// Returns a pass of a client without a token.
    pub fn new(principal: Principal) -> Self {
        Self::with(principal, None)
    }

    /// Returns a pass of a token's bearer.
    pub fn of_token(token: Arc<Token>) -> Self {
        Self::with(Principal::of_token(&token), Some(token))
    }

    /// Returns a pass of a client that a listener has admitted already, with the token that it sent
    /// there.
    pub fn with(principal: Principal, token: Option<Arc<Token>>) -> Self {
        let (is_revoked, _) = watch::channel(false);
        Self(Arc::new(Grant {
            principal,
            token,
            is_revoked,
        }))
    }

    /// Returns the authenticated identity, which claims no name yet.
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// Returns the role of the bearer.
    pub fn role(&self) -> Role {
        self.0.principal.role()
    }

    /// Returns the token, where one is required.
    pub fn token(&self) -> Option<&Arc<Token>> {
        self.0.token.as_ref()
    }

    /// Revokes the pass for all holders.
    pub fn revoke(&self) {
        self.0.is_revoked.send_replace(true);
    }

    /// Returns whether the pass was revoked.
    pub fn is_revoked(&self) -> bool {
        *self.0.is_revoked.borrow()
    }

    /// Waits until the pass is revoked.
    pub async fn revoked(&self) {
        let mut changes = self.0.is_revoked.subscribe();
        // The sender lives as long as the pass.
        let _ = changes.wait_for(|is_revoked| *is_revoked).await;
    }
}

/// The reason why a client is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A token is required and there was none.
    #[error("a token is required")]
    Missing,
    /// The token is unknown or revoked.
    #[error("the token is unknown or revoked")]
    Unknown,
    /// The tokens could not be checked, so nobody is admitted.
    #[error("tokens cannot be checked at the moment")]
    Broken,
}

/// Checks tokens. All listeners use the same one.
pub trait Gate: Send + Sync {
    /// Checks the token of a client, empty for none. It never waits.
    fn admit(&self, token: &str) -> Result<Pass, Refused>;
}

/// Admits every client as an administrator: for loopback without tokens.
#[derive(Clone, Copy, Debug)]
pub struct Open;

impl Gate for Open {
    fn admit(&self, _: &str) -> Result<Pass, Refused> {
        Ok(Pass::new(Principal::open()))
    }
}
