//! Scopes: the search keys of conversations, as hashes.
//!
//! The views store no text. Metadata and participants are stored only as hashes, so nothing in the
//! file has to be erased. A hash is 128 bits of SHA-256, so that collisions are practically
//! impossible.

use ring::digest::{Context, SHA256};

/// Size of a scope in bytes.
pub(super) const SCOPE_SIZE: usize = 16;

/// A search key of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Scope(pub(super) [u8; SCOPE_SIZE]);

impl Scope {
    /// Returns the scope of all conversations of `org/namespace`. Other scopes are derived from it.
    pub(super) fn namespace(namespace: &str) -> Self {
        hash(0, &[namespace.as_bytes()])
    }

    /// Returns the scope of conversations with that label in their metadata.
    pub(super) fn label(self, key: &str, value: &str) -> Self {
        hash(1, &[&self.0, key.as_bytes(), value.as_bytes()])
    }

    /// Returns the scope of conversations with that participant.
    pub(super) fn participant(self, who: &str) -> Self {
        hash(2, &[&self.0, who.as_bytes()])
    }

    /// Returns the scope of conversations with due work for that webhook.
    pub(super) fn due(self, agent: &str) -> Self {
        hash(3, &[&self.0, agent.as_bytes()])
    }
}

/// Hashes the pieces, each after its length, so that different lists never give the same input.
fn hash(kind: u8, pieces: &[&[u8]]) -> Scope {
    let mut context = Context::new(&SHA256);
    context.update(&[kind]);
    for piece in pieces {
        context.update(&(piece.len() as u64).to_le_bytes());
        context.update(piece);
    }
    let digest = context.finish();
    let mut scope = [0; SCOPE_SIZE];
    scope.copy_from_slice(&digest.as_ref()[..SCOPE_SIZE]);
    Scope(scope)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn different_scopes_have_different_hashes() {
        let one = Scope::namespace("a/b");
        let all = [
            one,
            Scope::namespace("a/bc"),
            one.label("k", "v"),
            one.label("kv", ""),
            one.label("", "kv"),
            Scope::namespace("a/bc").label("k", "v"),
            one.participant("k"),
            one.due("k"),
        ];
        assert_eq!(BTreeSet::from(all).len(), all.len());
    }

    /// Stored: another hash is another layout of the file.
    #[test]
    fn scope_hash_is_stable() {
        let scope = Scope::namespace("default/default").participant("alice");
        let hex: String = scope.0.iter().map(|it| format!("{it:02x}")).collect();
        assert_eq!(hex, "f324a8df15c8663068dc699c687d7deb");
    }
}
