//! CRC-32C of joined bytes, from the CRCs of the parts.
//!
//! The bytes behind the first part multiply its CRC by a power of x: x⁸ for each byte, modulo the
//! polynomial. `crc32c::crc32c_combine` computes the same, but squares matrices in each call, which
//! takes longer than the checksum of a piece of 64 KiB.

/// The polynomial of CRC-32C without x³²; the highest bit is x⁰.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// The polynomial 1.
const ONE: u32 = 1 << 31;

/// Bytes of a size.
const SIZE_BYTES: usize = size_of::<u32>();

/// Powers of x: `POWERS[place][byte]` is for `byte` · 256^`place` bytes.
static POWERS: [[u32; 256]; SIZE_BYTES] = powers();

/// Returns the CRC of two parts that are joined, the second of which has `size` bytes.
pub(crate) fn join(first: u32, second: u32, size: u32) -> u32 {
    let powers = POWERS.iter().zip(size.to_le_bytes());
    let power = powers.filter(|(_, byte)| *byte != 0);
    power.fold(first, |crc, (powers, byte)| {
        multiply(powers[usize::from(byte)], crc)
    }) ^ second
}

const fn powers() -> [[u32; 256]; SIZE_BYTES] {
    let mut all = [[ONE; 256]; SIZE_BYTES];
    let mut one_byte = ONE >> 8;
    let mut place = 0;
    while place < SIZE_BYTES {
        let mut byte = 1;
        while byte < 256 {
            all[place][byte] = multiply(all[place][byte - 1], one_byte);
            byte += 1;
        }
        one_byte = multiply(all[place][255], one_byte);
        place += 1;
    }
    all
}

/// Multiplies two polynomials.
const fn multiply(one: u32, other: u32) -> u32 {
    let (mut product, mut shifted, mut bit) = (0, other, ONE);
    while bit > 0 {
        if one & bit != 0 {
            product ^= shifted;
        }
        shifted = (shifted >> 1) ^ (POLYNOMIAL & (shifted & 1).wrapping_neg());
        bit >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(bytes: &[u8], cut: usize) {
        let (first, second) = bytes.split_at(cut);
        let joined = join(
            crc32c::crc32c(first),
            crc32c::crc32c(second),
            second.len() as u32,
        );
        assert_eq!(joined, crc32c::crc32c(bytes), "{} and {cut}", bytes.len());
    }

    #[test]
    fn joined_checksum_is_that_of_all_bytes_for_long_parts() {
        let bytes = b"0123456789abcdefghi".repeat(900_000);
        for cut in [0, 1, 255, 65_536, 222_784, bytes.len() - 1, bytes.len()] {
            check(&bytes, cut);
        }
    }

    proptest! {
        #[test]
        fn joined_checksum_is_that_of_all_bytes(
            bytes in proptest::collection::vec(any::<u8>(), 0..2_000),
            place in any::<proptest::sample::Index>(),
        ) {
            check(&bytes, place.index(bytes.len() + 1));
        }
    }
}
