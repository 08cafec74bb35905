//! Under what a conversation is looked for, as a hash.
//!
//! The views hold no text: neither metadata nor the name of a participant stands in their file, so
//! there is nothing in it to erase. 128 bits of SHA-256, so that no two scopes are ever confused.

use ring::digest::{Context, SHA256};

/// Bytes of a scope.
pub(super) const SCOPE_SIZE: usize = 16;

/// Under what conversations are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Scope(pub(super) [u8; SCOPE_SIZE]);

impl Scope {
    /// All conversations of `org/namespace`; the other scopes are within one.
    pub(super) fn namespace(namespace: &str) -> Self {
        hash(0, &[namespace.as_bytes()])
    }

    /// Those whose metadata has that value under that key.
    pub(super) fn label(self, key: &str, value: &str) -> Self {
        hash(1, &[&self.0, key.as_bytes(), value.as_bytes()])
    }

    /// Those in which somebody takes part.
    pub(super) fn participant(self, who: &str) -> Self {
        hash(2, &[&self.0, who.as_bytes()])
    }

    /// Those that have something for the webhook of that name.
    pub(super) fn due(self, agent: &str) -> Self {
        hash(3, &[&self.0, agent.as_bytes()])
    }
}

/// Each piece behind its length, so that no two lists of pieces are the same bytes.
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
    fn no_two_scopes_are_the_same() {
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
    fn a_scope_never_changes() {
        let scope = Scope::namespace("default/default").participant("alice");
        let hex: String = scope.0.iter().map(|it| format!("{it:02x}")).collect();
        assert_eq!(hex, "f324a8df15c8663068dc699c687d7deb");
    }
}
