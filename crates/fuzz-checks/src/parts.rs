//! Parts of messages from any bytes: parts or an error, nothing panics, and every part has a fact of
//! its size.

use message_json::facts;

/// Checks one input.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let mut found = Vec::new();
    if facts::extract(input, &mut found).is_ok() {
        let sizes: usize = found.iter().map(|fact| fact.size as usize).sum();
        assert!(found.len() <= facts::PARTS_MAX && sizes <= input.len());
    }
}
