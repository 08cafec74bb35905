//! Checks for fuzzing: each module takes any bytes and asserts properties of a parser.
//!
//! `cargo xtask fuzz` searches for inputs that violate them, with the targets in `fuzz/`. The tests
//! run every check on random bytes, so that the checks compile and hold in continuous integration.

pub mod batches;
pub mod blocks;
pub mod chunks;
pub mod conversations;
pub mod frames;
pub mod heads;
pub mod kafka;
pub mod links;
pub mod parts;
pub mod slim;

/// Returns the bytes that an encoder appends.
fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}
