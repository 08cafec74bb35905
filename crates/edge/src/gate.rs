//! Authentication: tokens are judged here, for every door.

use std::sync::Arc;

use node::access::Principal;
pub use node::tokens::Role;
use node::tokens::Token;
use tokio::sync::watch;

/// Leave to come in, until it is revoked. Cheap to clone: all clones are revoked together.
#[derive(Clone, Debug)]
pub struct Pass(Arc<Grant>);

#[derive(Debug)]
struct Grant {
    principal: Principal,
    token: Option<Arc<Token>>,
    is_revoked: watch::Sender<bool>,
}

impl Pass {
    /// A pass of a client that showed no token.
    pub fn new(principal: Principal) -> Self {
        Self::with(principal, None)
    }

    /// A pass of a token's bearer.
    pub fn of_token(token: Arc<Token>) -> Self {
        Self::with(Principal::of_token(&token), Some(token))
    }

    /// A pass of a client that a door has let in already, with the token that it showed there.
    pub fn with(principal: Principal, token: Option<Arc<Token>>) -> Self {
        let (is_revoked, _) = watch::channel(false);
        Self(Arc::new(Grant {
            principal,
            token,
            is_revoked,
        }))
    }

    /// The proven identity, which claims no name yet.
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// What the bearer may do.
    pub fn role(&self) -> Role {
        self.0.principal.role()
    }

    /// The token that was shown, where one is required.
    pub fn token(&self) -> Option<&Arc<Token>> {
        self.0.token.as_ref()
    }

    /// Ends the pass for all that hold it.
    pub fn revoke(&self) {
        self.0.is_revoked.send_replace(true);
    }

    /// Whether the pass has been revoked.
    pub fn is_revoked(&self) -> bool {
        *self.0.is_revoked.borrow()
    }

    /// Ends when the pass is revoked.
    pub async fn revoked(&self) {
        let mut changes = self.0.is_revoked.subscribe();
        // The sender lives as long as the pass.
        let _ = changes.wait_for(|is_revoked| *is_revoked).await;
    }
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
    /// Judges a client that presents `token`, empty for none. It never waits.
    fn admit(&self, token: &str) -> Result<Pass, Refused>;
}

/// Lets everybody do everything: a laptop, loopback only.
#[derive(Clone, Copy, Debug)]
pub struct Open;

impl Gate for Open {
    fn admit(&self, _: &str) -> Result<Pass, Refused> {
        Ok(Pass::new(Principal::open()))
    }
}
