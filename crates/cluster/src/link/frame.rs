//! Frames between nodes, little-endian.
//!
//! ```text
//!  0        4        8      9        10      12     20
//! +--------+--------+------+--------+-------+------+- - - - -+
//! | length | crc32c | kind | answer | shard |  id  |  body   |
//! |  u32   |  u32   |  u8  |   u8   |  u16  | u64  | length  |
//! +--------+--------+------+--------+-------+------+- - - - -+
//! ```
//!
//! The checksum covers all other bytes of the frame. An answer has the kind, the shard and the id of
//! its request.

use bytes::{Buf, Bytes, BytesMut};
use journal::ShardId;

/// Bytes of the header.
pub(crate) const HEADER_SIZE: usize = 20;

/// The operation that a frame requests, or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Append = 1,
    Vote = 2,
    PreVote = 3,
    Transfer = 4,
    Call = 5,
    /// The state of a node's disk; the answer is the peer's time.
    Report = 6,
}

/// A frame without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) operation: Operation,
    pub(crate) is_answer: bool,
    pub(crate) shard: ShardId,
    /// Number of the request on its connection, in the direction in which it was sent.
    pub(crate) id: u64,
}

/// Bytes that are no frame of a peer. The connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// The body is longer than the channel permits.
    #[error("a frame of {size} bytes is too large (limit {limit} bytes)")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The checksum does not match.
    #[error("the checksum of a frame does not match")]
    Checksum,
    /// The header is invalid.
    #[error("the header of a frame is invalid")]
    Header,
}

impl Head {
    /// Appends a frame whose body `write` appends.
    pub(crate) fn frame(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&[self.operation as u8, self.is_answer.into()]);
        out.extend_from_slice(&self.shard.0.to_le_bytes());
        out.extend_from_slice(&self.id.to_le_bytes());
        write(out);
        let size = ((out.len() - start - HEADER_SIZE) as u32).to_le_bytes();
        let crc = checksum(&size, &out[start + 8..]);
        out[start..start + 4].copy_from_slice(&size);
        out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
    }

    fn decode(bytes: [u8; 12]) -> Option<Head> {
        let [operation, is_answer, shard_low, shard_high, id @ ..] = bytes;
        let operation = match operation {
            1 => Operation::Append,
            2 => Operation::Vote,
            3 => Operation::PreVote,
            4 => Operation::Transfer,
            5 => Operation::Call,
            6 => Operation::Report,
            _ => return None,
        };
        let is_answer = match is_answer {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Head {
            operation,
            is_answer,
            shard: ShardId(u16::from_le_bytes([shard_low, shard_high])),
            id: u64::from_le_bytes(id),
        })
    }
}

/// Takes the next complete frame off `input`; `None` if it is incomplete. Room for the rest of an
/// incomplete frame is made once its length is known to be permitted.
pub(crate) fn next_frame(
    input: &mut BytesMut,
    body_size_max: usize,
) -> Result<Option<(Head, Bytes)>, FrameError> {
    let Some((size, rest)) = input.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let size_bytes = *size;
    let size = u32::from_le_bytes(size_bytes) as usize;
    if size > body_size_max {
        let limit = body_size_max;
        return Err(FrameError::TooLarge { size, limit });
    }
    let Some((crc, rest)) = rest.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let crc = u32::from_le_bytes(*crc);
    let end = HEADER_SIZE + size;
    if input.len() < end {
        input.reserve(end - input.len());
        return Ok(None);
    }
    let checked = &rest[..end - 8];
    if checksum(&size_bytes, checked) != crc {
        return Err(FrameError::Checksum);
    }
    let head = checked.first_chunk().copied().and_then(Head::decode);
    let head = head.ok_or(FrameError::Header)?;
    input.advance(HEADER_SIZE);
    Ok(Some((head, input.split_to(size).freeze())))
}

fn checksum(size: &[u8; 4], rest: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(size), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = Head {
        operation: Operation::Vote,
        is_answer: true,
        shard: ShardId(0x0102),
        id: 0x0A0B_0C0D_0E0F_1011,
    };

    fn frame(body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        HEAD.frame(&mut out, |out| out.extend_from_slice(body));
        out
    }

    #[test]
    fn frame_has_the_published_bytes() {
        let bytes = frame(b"ab");
        assert_eq!(bytes[..4], [2, 0, 0, 0]);
        let rest = [
            2, 1, 2, 1, 0x11, 0x10, 0x0F, 0x0E, 0x0D, 0x0C, 0x0B, 0x0A, b'a', b'b',
        ];
        assert_eq!(bytes[8..], rest);
        assert_eq!(bytes[4..8], GOLDEN_CRC);
    }

    /// Checksum of the frame above.
    const GOLDEN_CRC: [u8; 4] = [51, 115, 130, 226];

    #[test]
    fn frames_are_whole_at_any_fragmentation() {
        let bytes: Vec<u8> = (0..40).flat_map(|size| frame(&vec![7; size * 9])).collect();
        for piece_size in [1, 3, 20, 21, 100, 5000] {
            let mut input = BytesMut::new();
            let mut next = 0;
            for piece in bytes.chunks(piece_size) {
                input.extend_from_slice(piece);
                while let Some((head, body)) = next_frame(&mut input, 1000).unwrap() {
                    assert_eq!((head, body.len()), (HEAD, next * 9));
                    next += 1;
                }
            }
            assert_eq!(next, 40);
        }
    }

    #[test]
    fn changed_frame_is_refused() {
        let bytes = frame(b"body");
        for bit in 0..bytes.len() * 8 {
            let mut changed = BytesMut::from(&bytes[..]);
            changed[bit / 8] ^= 1 << (bit % 8);
            let next = next_frame(&mut changed, 1000);
            assert!(!matches!(next, Ok(Some(_))), "bit {bit}");
        }
    }

    #[test]
    fn large_frame_is_refused_by_its_length_alone() {
        let mut input = BytesMut::from(&[1, 1, 0, 0][..]);
        let (size, limit) = (257, 256);
        let refused = next_frame(&mut input, limit);
        assert_eq!(refused, Err(FrameError::TooLarge { size, limit }));
        assert_eq!(next_frame(&mut input, 257), Ok(None));
    }
}
