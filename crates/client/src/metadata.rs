//! `Metadata`: key-value entries sent with a body, such as trace context and the sender's name.

use std::fmt;

use bytes::{Bytes, BytesMut};
use wire::encode_metadata;

/// Keys with values in insertion order, stored in the wire format.
///
/// ```
/// let metadata = telpher_client::Metadata::new().with("run", "42").with("traceparent", "00-ab-cd-01");
/// assert_eq!(metadata.get("run"), Some(&b"42"[..]));
/// assert_eq!(metadata.text("traceparent"), Some("00-ab-cd-01"));
/// assert_eq!(metadata.get("other"), None);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    block: Bytes,
}

impl Metadata {
    /// Creates metadata without entries.
    pub const fn new() -> Self {
        Self {
            block: Bytes::new(),
        }
    }

    /// Adds an entry. A key has at most 255 bytes, a value at most 65,535; the sum of all keys and
    /// values plus 3 bytes per entry must be below 65,536 bytes, or sending fails with `too_large`.
    #[must_use]
    pub fn with(self, key: &str, value: impl AsRef<[u8]>) -> Self {
        let mut block = Vec::from(BytesMut::from(self.block));
        encode_metadata(key, value.as_ref(), &mut block);
        Self {
            block: block.into(),
        }
    }

    /// Returns the first value of `key`.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        wire::Metadata::new(&self.block).get(key)
    }

    /// Returns the first value of `key` if it is valid UTF-8.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)
            .and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Iterates over the entries up to the first malformed one.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        wire::Metadata::new(&self.block)
            .iter()
            .map_while(Result::ok)
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }

    pub(crate) fn from_block(block: &[u8]) -> Self {
        Self {
            block: Bytes::copy_from_slice(block),
        }
    }

    pub(crate) fn block(&self) -> &[u8] {
        &self.block
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self
            .iter()
            .map(|(key, value)| (key, String::from_utf8_lossy(value)));
        f.debug_map().entries(entries).finish()
    }
}
