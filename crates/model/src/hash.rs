//! FNV-1a, the hash for short keys where the value must be the same on every machine and for ever,
//! because it is stored or sent. It does not resist attackers who choose the keys.
//!
//! Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm", with their constants.

/// FNV-1a with 64 bits.
pub fn fnv1a_64(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let bytes = bytes.into_iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// FNV-1a with 32 bits.
pub fn fnv1a_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    let bytes = bytes.into_iter();
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that the authors publish with their test vectors.
    #[test]
    fn hashes_equal_the_published_ones() {
        for (text, wide, narrow) in [
            ("", 0xcbf2_9ce4_8422_2325, 0x811c_9dc5),
            ("a", 0xaf63_dc4c_8601_ec8c, 0xe40c_292c),
            ("foobar", 0x8594_4171_f739_67e8, 0xbf9c_f968),
        ] {
            assert_eq!(fnv1a_64(text.bytes()), wide, "{text}");
            assert_eq!(fnv1a_32(text.bytes()), narrow, "{text}");
        }
    }
}
