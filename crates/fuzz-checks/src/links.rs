//! Frames between nodes, and what they carry, from any bytes.

/// Checks one input.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    cluster::fuzzing::check(input);
}
