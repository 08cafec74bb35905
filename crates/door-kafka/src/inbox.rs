//! The receive buffer: splits received bytes into frames.
//!
//! The bytes of one read are copied once, into memory of their own, which the frames share. Memory
//! is taken for a whole frame at once, so that it is not copied while it grows; but a size reserves
//! at most eight times the bytes that have arrived. An empty buffer holds no memory.

use bytes::{Bytes, BytesMut};
use kafka::{ApiKey, FrameError, peek_api_key, peek_frame_size, take_frame};

/// The largest frame of an API other than Produce, in bytes: no other carries records.
const OTHER_SIZE_MAX: usize = 16 << 20;

/// The largest frame of a client that is not authenticated, in bytes.
const STRANGER_SIZE_MAX: usize = 64 << 10;

/// Most memory for a frame, as a multiple of the bytes that have arrived.
const RESERVED_MAX: usize = 8;

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
        let start = match self.arrived.is_empty() {
            true => chunk,
            false => &self.arrived,
        };
        let count = self.arrived.len() + chunk.len();
        let size = peek_frame_size(start).unwrap_or(count);
        let size = size.min(RESERVED_MAX * count).max(count);
        self.arrived.reserve(size - self.arrived.len());
        self.arrived.extend_from_slice(chunk);
    }

    /// Returns the number of bytes that the next read should ask for at most: those that a frame
    /// lacks which has arrived in part, so that the frames after it get memory of their own.
    pub(super) fn read_max(&self) -> usize {
        let missing = peek_frame_size(&self.arrived)
            .and_then(|size| size.checked_sub(self.arrived.len()))
            .filter(|missing| *missing > 0);
        missing.unwrap_or(usize::MAX)
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
    fn a_size_reserves_at_most_a_multiple_of_the_bytes_that_have_arrived() {
        let whole = frame(ApiKey::Produce, 1000);
        let mut inbox = Inbox::default();
        inbox.feed(&whole[..200]);
        assert_eq!(inbox.next(ADMITTED), Ok(None));
        let place = inbox.arrived.as_ptr();
        assert_eq!(inbox.read_max(), whole.len() - 200);
        inbox.feed(&whole[200..]);
        assert_eq!(inbox.arrived.as_ptr(), place, "a frame is not moved");
        assert_eq!(inbox.next(ADMITTED).unwrap().unwrap().len(), 1000);
        assert_eq!(inbox.read_max(), usize::MAX);

        inbox.feed(&frame(ApiKey::Produce, 30 << 20)[..1000]);
        assert_eq!(inbox.next(ADMITTED), Ok(None));
        assert!(inbox.arrived.capacity() <= RESERVED_MAX * 1000);
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
