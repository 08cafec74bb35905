//! Tokens by the digest of their text: a lookup takes the same time whatever their number.

use std::collections::HashMap;

use parking_lot::RwLock;

use super::Token;
use super::secret::{Digest, Fingerprint, is_token};

/// A list of tokens, to be looked up by their text. It does not change.
///
/// Tokens that earlier versions made have a salt each, so that the first look at one compares the
/// text with all of these; the second finds it at once.
#[derive(Debug, Default)]
pub struct Index {
    tokens: Vec<Token>,
    by_digest: HashMap<Digest, usize>,
    by_name: HashMap<String, usize>,
    salted: Vec<usize>,
    /// Salted tokens that have been shown.
    shown: RwLock<HashMap<Digest, usize>>,
}

impl Index {
    /// An index of these tokens.
    pub fn new(tokens: &[Token]) -> Self {
        let mut index = Self {
            tokens: tokens.to_vec(),
            ..Self::default()
        };
        for (position, token) in tokens.iter().enumerate() {
            index.by_name.insert(token.name.clone(), position);
            match &token.fingerprint {
                Fingerprint::Digest(digest) => {
                    index.by_digest.insert(*digest, position);
                }
                Fingerprint::Salted { .. } => index.salted.push(position),
            }
        }
        index
    }

    /// The tokens, in the order in which they were added.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The position of the token with this text.
    pub fn find(&self, text: &str) -> Option<usize> {
        if !is_token(text) {
            return None;
        }
        let digest = Digest::of(text);
        // The lookup time can reveal digests only, and no token's text follows from its digest.
        if let Some(position) = self.by_digest.get(&digest) {
            return Some(*position);
        }
        if self.salted.is_empty() {
            return None;
        }
        if let Some(position) = self.shown.read().get(&digest) {
            return Some(*position);
        }
        let matches = |position: &&usize| self.tokens[**position].fingerprint.matches(text);
        let position = *self.salted.iter().find(matches)?;
        self.shown.write().insert(digest, position);
        Some(position)
    }

    /// The position of this very token.
    pub fn position(&self, token: &Token) -> Option<usize> {
        let position = *self.by_name.get(&token.name)?;
        (self.tokens[position] == *token).then_some(position)
    }

    /// Takes over which salted tokens have been shown to the index before this one.
    pub fn learn(&mut self, before: &Self) {
        let shown = before.shown.read();
        let known = shown.iter().filter_map(|(digest, position)| {
            let position = self.position(&before.tokens[*position])?;
            Some((*digest, position))
        });
        *self.shown.get_mut() = known.collect();
    }
}
