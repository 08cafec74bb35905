//! Variable-length integers (LEB128): seven bits per byte, lowest first; the high bit marks that
//! more bytes follow.

/// Bytes of a number at most.
pub(super) const SIZE_MAX: usize = 10;

/// Appends `value`, 1 to [`SIZE_MAX`] bytes.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Removes a number from the front. `None` if the bytes end within it, or it exceeds 64 bits.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Encodes a signed difference so that small absolute values stay small (zigzag).
pub(super) fn fold(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// Decodes a difference encoded by [`fold`].
pub(super) fn unfold(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_varint_is_decoded_to_its_value() {
        for shift in 0..64 {
            for value in [1_u64 << shift, (1_u64 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                put(&mut bytes, value);
                let mut rest = &bytes[..];
                assert_eq!(take(&mut rest), Some(value));
                assert!(rest.is_empty());
                assert_eq!(fold(unfold(value)), value);
            }
        }
    }

    #[test]
    fn truncated_or_too_large_varint_is_none() {
        assert_eq!(take(&mut &[0x80_u8; 5][..]), None);
        assert_eq!(take(&mut &[0xff_u8; 11][..]), None);
        assert_eq!(take(&mut &[][..]), None);
    }
}
