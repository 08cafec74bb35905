//! The names that a client's token allows on this listener, in addition to `slim.rules`.
//!
//! SLIM names are hashes, so the patterns of a token are hashed, too.

use access::{Pattern, Principal};
use model::SYSTEM_ORG;
use slim::{Name, Prefix};

/// The names of one client. The node's own names are never included.
pub(super) struct Scope {
    /// `None` for every name.
    patterns: Option<Box<[[Option<u64>; 3]]>>,
    system: u64,
}

impl Scope {
    /// Returns every name, as far as rules allow.
    pub(super) fn any() -> Self {
        Self {
            patterns: None,
            system: hash(SYSTEM_ORG),
        }
    }

    /// Returns the names of a token's bearer.
    pub(super) fn of_token(principal: &Principal) -> Self {
        let hashed = |pattern: &Pattern| pattern.parts().map(|part| part.map(hash));
        let patterns = principal.patterns();
        Self {
            patterns: patterns.map(|patterns| patterns.iter().map(hashed).collect()),
            ..Self::any()
        }
    }

    /// Returns whether the client may subscribe and send as this agent.
    pub(super) fn contains(&self, agent: &Prefix) -> bool {
        let is_in = |pattern: &[Option<u64>; 3]| {
            let mut parts = pattern.iter().zip(agent);
            parts.all(|(own, part)| own.is_none_or(|own| own == *part))
        };
        let is_free = |patterns: &[[Option<u64>; 3]]| patterns.iter().any(is_in);
        agent[0] != self.system && self.patterns.as_deref().is_none_or(is_free)
    }
}

fn hash(component: &str) -> u64 {
    Name::new([component; 3], None).encoded.prefix[0]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use access::tokens::{ENTROPY_SIZE, Role, Token};

    use super::*;

    #[test]
    fn a_scope_contains_the_names_of_the_tokens_patterns() {
        let prefix = |texts: [&str; 3]| Name::new(texts, Some(7)).encoded.prefix;
        let names: Arc<[Pattern]> = Arc::new(["acme/pay/*".parse().unwrap()]);
        let entropy = [1; ENTROPY_SIZE];
        let (_, token) = Token::generate("pay", Role::Agent, Some(names), 0, &entropy);
        let scope = Scope::of_token(&Principal::of_token(&token));
        assert!(scope.contains(&prefix(["acme", "pay", "one"])));
        assert!(!scope.contains(&prefix(["acme", "search", "one"])));
        assert!(Scope::any().contains(&prefix(["acme", "search", "one"])));
        assert!(!Scope::any().contains(&prefix(["telpher", "system", "node"])));
        let (_, free) = Token::generate("free", Role::Agent, None, 0, &entropy);
        let scope = Scope::of_token(&Principal::of_token(&free));
        assert!(scope.contains(&prefix(["acme", "search", "one"])));
    }
}
