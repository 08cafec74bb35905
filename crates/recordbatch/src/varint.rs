//! Zigzag numbers of variable length, as in Protocol Buffers.

/// Appends a number of 32 or 64 bits: the bytes are the same.
pub(crate) fn put(out: &mut Vec<u8>, number: i64) {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// Returns the size of an encoded number, in bytes.
pub(crate) fn size(number: i64) -> usize {
    let zigzag = ((number << 1) ^ (number >> 63)) as u64;
    (64 - (zigzag | 1).leading_zeros() as usize).div_ceil(7)
}

/// Takes a number of at most 64 bits.
pub(crate) fn long(bytes: &mut &[u8]) -> Option<i64> {
    let mut zigzag = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if index == 9 && bits > 1 {
            return None;
        }
        zigzag |= bits << (7 * index);
        if byte & 0x80 == 0 {
            *bytes = &bytes[index + 1..];
            return Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64));
        }
    }
    None
}

/// Takes a number of at most 32 bits.
pub(crate) fn int(bytes: &mut &[u8]) -> Option<i32> {
    let mut rest = *bytes;
    let number = i32::try_from(long(&mut rest)?).ok()?;
    // A number of 32 bits may take five bytes at most, even if its value is small.
    (bytes.len() - rest.len() <= 5).then(|| *bytes = rest)?;
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_the_encoding_of_protocol_buffers() {
        let table: [(i64, &[u8]); 8] = [
            (0, &[0]),
            (-1, &[1]),
            (1, &[2]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (i64::from(i32::MAX), &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
            (i64::from(i32::MIN), &[0xff, 0xff, 0xff, 0xff, 0x0f]),
            (
                i64::MIN,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            ),
        ];
        for (number, expected) in table {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(bytes, expected, "{number}");
            assert_eq!(size(number), bytes.len(), "{number}");
            let mut rest = &bytes[..];
            assert_eq!(long(&mut rest), Some(number));
            assert!(rest.is_empty());
            let mut rest = &bytes[..];
            assert_eq!(int(&mut rest), i32::try_from(number).ok());
        }
    }

    #[test]
    fn truncated_and_oversized_varints_are_refused() {
        for bytes in [
            &[0xff; 11][..],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            &[0x80],
            &[],
        ] {
            assert_eq!(long(&mut &bytes[..]), None);
        }
        let padded = [0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(int(&mut &padded[..]), None);
        assert_eq!(int(&mut &[0xff, 0xff, 0xff, 0xff, 0x1f][..]), None);
    }
}
