//! Metadata: optional entries next to a body, such as the trace context or the sender's name.
//!
//! A block is a `u16` length and that many bytes of entries; an entry is a `u8` key length, the
//! key, a `u16` value length and the value. A node forwards the block as the bytes it came as.

use crate::cursor::{Cursor, Malformed, cut};

/// W3C trace context, level 1: `traceparent`.
pub const TRACEPARENT: &str = "traceparent";
/// W3C trace context, level 1: `tracestate`.
pub const TRACESTATE: &str = "tracestate";
/// The sender's name, added by the node for subscribers that ask for it.
pub const SOURCE: &str = "source";

/// The entries of a metadata block, validated while they are read.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a> {
    bytes: &'a [u8],
}

impl<'a> Metadata<'a> {
    /// Wraps the bytes of the entries, without the block's length.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the first value of `key`.
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.iter()
            .filter_map(Result::ok)
            .find(|(found, _)| *found == key)
            .map(|(_, value)| value)
    }

    /// Iterates over all entries, in order. Ends after the first malformed one.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&'a str, &'a [u8]), Malformed>> + use<'a> {
        let mut rest = Some(Cursor::new(self.bytes, "metadata"));
        std::iter::from_fn(move || {
            let mut cursor = rest.take().filter(|cursor| !cursor.is_empty())?;
            let entry = read_entry(&mut cursor);
            if entry.is_ok() {
                rest = Some(cursor);
            }
            Some(entry)
        })
    }
}

fn read_entry<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, &'a [u8]), Malformed> {
    let key = cursor.text8()?;
    let length = cursor.u16()?;
    Ok((key, cursor.take(usize::from(length))?))
}

/// Appends one entry, without the block's length. A key above 255 bytes, or a value above 65,535
/// bytes, is cut.
pub fn encode_metadata(key: &str, value: &[u8], out: &mut Vec<u8>) {
    let key = cut(key, usize::from(u8::MAX));
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.push(key.len() as u8);
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
}
