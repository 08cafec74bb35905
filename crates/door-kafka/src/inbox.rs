//! The receive buffer: splits received bytes into frames.
//!
//! The bytes of one read are copied once, into memory of their own, which the frames share. An
//! empty buffer holds no memory.

use bytes::{Bytes, BytesMut};
use kafka::{ApiKey, FrameError, peek_api_key, take_frame};

/// The largest frame of an API other than Produce, in bytes: no other carries records.
const OTHER_SIZE_MAX: usize = 16 << 20;

/// The largest frame of a client that is not authenticated, in bytes.
const STRANGER_SIZE_MAX: usize = 64 << 10;

/// The permitted size of a client's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The client is not authenticated.
    Stranger,
    /// The client may send frames up to this size.
    Admitted {
        /// The largest frame with records, in bytes.
        frame_size_max: usize,
    },
}

/// Received bytes that are not split yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    arrived: BytesMut,
}

impl Inbox {
    /// Adds the bytes of a read.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        self.arrived.extend_from_slice(chunk);
    }

    /// Returns the next frame, without its size; `None` if it is incomplete.
    pub(super) fn next(&mut self, trust: Trust) -> Result<Option<Bytes>, FrameError> {
        let size_max = match (trust, peek_api_key(&self.arrived)) {
            (Trust::Stranger, _) => STRANGER_SIZE_MAX,
            (Trust::Admitted { frame_size_max }, Some(ApiKey::Produce)) => frame_size_max,
            (Trust::Admitted { frame_size_max }, _) => frame_size_max.min(OTHER_SIZE_MAX),
        };
        // The API key decides the limit, so wait until it is received.
        if self.arrived.len() < size_of::<i32>() + size_of::<i16>() {
            return Ok(None);
        }
        let frame = take_frame(&mut self.arrived, size_max)?;
        if self.arrived.is_empty() {
            self.arrived = BytesMut::new();
        }
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMITTED: Trust = Trust::Admitted {
        frame_size_max: 32 << 20,
    };

    fn frame(key: ApiKey, size: usize) -> Vec<u8> {
        let mut frame = (size as i32).to_be_bytes().to_vec();
        frame.extend(key.code().to_be_bytes());
        frame.resize(size + size_of::<i32>(), 7);
        frame
    }

    #[test]
    fn frames_are_split_alike_in_pieces_of_any_size() {
        let bytes = [frame(ApiKey::Produce, 100), frame(ApiKey::Metadata, 10)].concat();
        for piece in [1, 3, 50, bytes.len()] {
            let mut inbox = Inbox::default();
            let mut found = Vec::new();
            for chunk in bytes.chunks(piece) {
                inbox.feed(chunk);
                while let Some(frame) = inbox.next(ADMITTED).unwrap() {
                    found.push(frame.len());
                }
            }
            assert_eq!(found, [100, 10], "in pieces of {piece}");
            assert_eq!(inbox.arrived.capacity(), 0, "nothing is held for nothing");
        }
    }

    #[test]
    fn only_produce_requests_of_authenticated_clients_may_be_large() {
        let refused = |key, size: usize, trust| {
            let mut inbox = Inbox::default();
            inbox.feed(&frame(key, size)[..8]);
            inbox.next(trust).is_err()
        };
        assert!(!refused(ApiKey::Produce, 32 << 20, ADMITTED));
        assert!(refused(ApiKey::Produce, (32 << 20) + 1, ADMITTED));
        assert!(!refused(ApiKey::Fetch, OTHER_SIZE_MAX, ADMITTED));
        assert!(refused(ApiKey::Fetch, OTHER_SIZE_MAX + 1, ADMITTED));
        let stranger = Trust::Stranger;
        assert!(!refused(ApiKey::Produce, STRANGER_SIZE_MAX, stranger));
        assert!(refused(ApiKey::Produce, STRANGER_SIZE_MAX + 1, stranger));
    }

    #[test]
    fn an_invalid_frame_size_is_refused() {
        let mut inbox = Inbox::default();
        inbox.feed(&[0xff, 0xff, 0xff, 0xff, 0, 0]);
        assert!(inbox.next(ADMITTED).is_err());
        // "GET / HTTP/1.1": somebody took the wrong door.
        let mut inbox = Inbox::default();
        inbox.feed(b"GET / HTTP/1.1\r\n");
        assert!(inbox.next(ADMITTED).is_err());
    }
}
