//! Properties of the decoders, for `fuzz-checks`.

use bytes::{Bytes, BytesMut};

use crate::link;
use crate::raft::{decode_membership, encode_membership};

/// Checks that each decoder takes any bytes, and that what it decodes is encoded unchanged.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let body = Bytes::copy_from_slice(input);
    if let Ok((log_id, membership)) = decode_membership(body.clone()) {
        let mut again = Vec::new();
        encode_membership(log_id, &membership, &mut again);
        let decoded = decode_membership(again.into());
        assert!(decoded.is_ok_and(|it| it == (log_id, membership)));
    }
    link::check_decoders(&body);
    let mut frames = BytesMut::from(input);
    while let Ok(true) = link::check_frame(&mut frames) {}
}

#[cfg(test)]
mod tests {
    #[test]
    fn decoders_take_random_bytes() {
        for seed in 0..5_000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let size = rng.usize(..300);
            let small = [0, 0, 0, 1, 2, 3, 9];
            let byte = |_| match seed % 2 {
                0 => rng.u8(..),
                _ => small[rng.usize(..small.len())],
            };
            let input: Vec<u8> = (0..size).map(byte).collect();
            super::check(&input);
        }
    }
}
