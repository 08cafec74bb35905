//! Entries beside a body: trace context, the sender's name, whatever an agent adds.

use std::fmt;

use bytes::{Bytes, BytesMut};
use wire::encode_metadata;

/// Keys with values, in the order in which they were added; kept in the form that travels.
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
    /// Without entries.
    pub const fn new() -> Self {
        Self {
            block: Bytes::new(),
        }
    }

    /// With one more entry. A key travels with up to 255 bytes and a value with up to 65,535;
    /// all entries together, with 3 bytes more for each, must stay below 65,536 bytes, or the
    /// message is refused with `too_large`.
    #[must_use]
    pub fn with(self, key: &str, value: impl AsRef<[u8]>) -> Self {
        let mut block = Vec::from(BytesMut::from(self.block));
        encode_metadata(key, value.as_ref(), &mut block);
        Self {
            block: block.into(),
        }
    }

    /// The first value of `key`.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        wire::Metadata::new(&self.block).get(key)
    }

    /// The first value of `key`, when it is text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)
            .and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Every entry, up to the first that is malformed.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        wire::Metadata::new(&self.block)
            .iter()
            .map_while(Result::ok)
    }

    /// Whether there is no entry.
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
