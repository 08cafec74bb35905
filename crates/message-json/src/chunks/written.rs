//! JSON values as they are written into a message, and their sizes.

use serde_json::value::RawValue;

/// The largest size of the names of fields, quotes and braces of a part, in bytes: that of a tool
/// call.
pub(super) const OVERHEAD: usize = 512;

/// Returns the size of `text` as JSON, without the quotes. No other notation is shorter.
pub(super) fn written_size(text: &str) -> usize {
    let size = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..=0x1f => "\\u0000".len(),
        _ => 1,
    };
    text.bytes().map(size).sum()
}

pub(super) fn size_of_optional(value: &Option<String>) -> usize {
    value.as_ref().map_or(0, String::len)
}

/// Replaces a value if there is a new one.
pub(super) fn keep(place: &mut Option<String>, value: Option<&RawValue>) {
    if let Some(value) = value {
        *place = owned(Some(value));
    }
}

pub(super) fn owned(value: Option<&RawValue>) -> Option<String> {
    value.map(|value| value.get().to_owned())
}

/// Appends a field of an object, if it has a value.
pub(super) fn field(text: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        text.push_str(",\"");
        text.push_str(name);
        text.push_str("\":");
        text.push_str(value);
    }
}
