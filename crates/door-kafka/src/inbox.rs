//! The receive buffer: splits received bytes into frames.
//!
//! The bytes of one read are copied once, into memory of their own, which the frames share. Memory
//! is taken for a whole frame at once, so that it is not copied while it grows; but a size reserves
//! at most eight times the bytes that have arrived, or what the last frame needed. An empty buffer
//! holds no memory.
//!
//! Long frames are not even copied: the rest of one is read straight into its memory, and after one the
//! next is expected to be about as long.

use bytes::{Bytes, BytesMut};
use kafka::{ApiKey, FrameError, peek_api_key, peek_frame_size, take_frame};

/// The largest frame of an API other than Produce, in bytes: no other carries records.
const OTHER_SIZE_MAX: usize = 16 << 20;

/// The largest frame of a client that is not authenticated, in bytes.
const STRANGER_SIZE_MAX: usize = 64 << 10;

/// Most memory for a frame, as a multiple of the bytes that have arrived.
const RESERVED_MAX: usize = 8;

/// Smallest number of missing bytes of a frame that are read straight into its memory. Fewer are read
/// together with the next frames.
const DIRECT_SIZE_MIN: usize = 16 << 10;

/// Most bytes that are expected of a frame before any of it has arrived.
const EXPECTED_SIZE_MAX: usize = 256 << 10;

/// Bytes by which a frame may be longer than the last one and still arrive with one read: batches of a
/// producer differ by the sizes of some numbers. What is read of the next frame is copied.
const LONGER_MAX: usize = 64;

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
    /// Bytes to expect of the next frame at most, if the last one was long.
    expected: usize,
}

impl Inbox {
    /// Adds the bytes of a read.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        let start = match self.arrived.is_empty() {
            true => chunk,
            false => &self.arrived,
        };
        let count = self.arrived.len() + chunk.len();
        let size = self.frame_room(start, count).unwrap_or(count).max(count);
        self.arrived.reserve(size - self.arrived.len());
        self.arrived.extend_from_slice(chunk);
    }

    /// Returns memory for the next read, behind the bytes that have arrived, and the number of bytes to
    /// read at most; `None` if they should be passed to [`Inbox::feed`]. If nothing was read,
    /// [`Inbox::rest`] must follow.
    pub(super) fn room(&mut self) -> Option<(&mut BytesMut, usize)> {
        let count = self.arrived.len();
        let size = self.frame_room(&self.arrived, count);
        let size = size.unwrap_or(self.expected);
        let missing = size.checked_sub(count);
        let missing = missing.filter(|missing| *missing >= DIRECT_SIZE_MIN)?;
        self.arrived.reserve(missing);
        Some((&mut self.arrived, missing))
    }

    /// Frees the memory that [`Inbox::room`] has reserved for a frame of which nothing has arrived.
    pub(super) fn rest(&mut self) {
        if self.arrived.is_empty() {
            self.arrived = BytesMut::new();
        }
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
        let size = peek_frame_size(&self.arrived);
        let frame = take_frame(&mut self.arrived, size_max)?;
        if frame.is_some() {
            let size = size.filter(|size| *size >= DIRECT_SIZE_MIN);
            self.expected = size.map_or(0, |size| size.min(EXPECTED_SIZE_MAX) + LONGER_MAX);
        }
        self.rest();
        Ok(frame)
    }

    /// Returns the size of the memory for the frame at the start of the `count` bytes that have arrived;
    /// `None` if its size has not arrived.
    fn frame_room(&self, start: &[u8], count: usize) -> Option<usize> {
        let size = peek_frame_size(start)?;
        Some(size.min(self.expected.max(RESERVED_MAX * count)))
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
    fn long_frames_are_read_straight_into_their_memory() {
        let long = frame(ApiKey::Produce, 100_000);
        let mut inbox = Inbox::default();
        assert!(inbox.room().is_none(), "the size is not known");
        inbox.feed(&long[..20_000]);
        let (memory, size) = inbox.room().unwrap();
        assert_eq!(size, long.len() - 20_000);
        let place = memory.as_ptr();
        memory.extend_from_slice(&long[20_000..90_000]);
        assert_eq!(memory.as_ptr(), place, "the frame is not moved");
        assert!(inbox.room().is_none(), "few bytes are missing");
        inbox.feed(&long[90_000..]);
        assert!(inbox.next(ADMITTED).unwrap().unwrap() == long[4..]);
        // The next frame is expected to have about the same size, and is longer.
        let longer = frame(ApiKey::Produce, 130_000);
        let (memory, first) = inbox.room().unwrap();
        assert_eq!(first, long.len() + LONGER_MAX);
        memory.extend_from_slice(&longer[..first]);
        assert_eq!(inbox.next(ADMITTED), Ok(None));
        let (memory, size) = inbox.room().unwrap();
        assert_eq!(size, longer.len() - first);
        memory.extend_from_slice(&longer[first..]);
        assert!(inbox.next(ADMITTED).unwrap().unwrap() == longer[4..]);
        // Nothing comes, and then a short one.
        assert!(inbox.room().is_some());
        inbox.rest();
        assert_eq!(inbox.arrived.capacity(), 0, "nothing is held for nothing");
        inbox.feed(&frame(ApiKey::Metadata, 10));
        assert_eq!(inbox.next(ADMITTED).unwrap().unwrap().len(), 10);
        assert!(inbox.room().is_none(), "short frames are expected");
    }

    #[test]
    fn frames_of_nearly_the_same_size_arrive_with_one_read_each() {
        let mut inbox = Inbox::default();
        inbox.feed(&frame(ApiKey::Produce, 50_000));
        assert!(inbox.next(ADMITTED).unwrap().is_some());
        let sizes = [50_003, 50_064, 49_997, 50_020, 49_950, 50_014];
        let sent: Vec<u8> = sizes
            .iter()
            .flat_map(|size| frame(ApiKey::Produce, *size))
            .collect();
        let mut rest = &sent[..];
        for size in sizes {
            let (memory, count) = inbox.room().unwrap();
            let (now, later) = rest.split_at(count.min(rest.len()));
            memory.extend_from_slice(now);
            rest = later;
            assert_eq!(inbox.next(ADMITTED).unwrap().unwrap().len(), size);
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn a_frame_of_which_little_has_arrived_reserves_little() {
        let mut inbox = Inbox::default();
        inbox.feed(&frame(ApiKey::Produce, 30 << 20)[..4_000]);
        let (memory, size) = inbox.room().unwrap();
        assert_eq!(size, (RESERVED_MAX - 1) * 4_000);
        assert!(memory.capacity() <= RESERVED_MAX * 4_000);

        let mut inbox = Inbox::default();
        inbox.feed(&frame(ApiKey::Produce, 2 << 20));
        assert!(inbox.next(ADMITTED).unwrap().is_some());
        let (memory, size) = inbox.room().unwrap();
        assert_eq!(size, EXPECTED_SIZE_MAX + LONGER_MAX);
        assert!(memory.capacity() <= 2 * EXPECTED_SIZE_MAX);
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
