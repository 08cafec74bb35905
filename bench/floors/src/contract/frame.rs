//! The frame of the floors: a 16-byte header and a payload, little-endian.
//!
//! ```text
//!  0        4        8                16
//! +--------+--------+----------------+- - - - - - - +
//! | length |  zero  |       id       |   payload    |
//! |  u32   |  u32   |      u64       | length bytes |
//! +--------+--------+----------------+- - - - - - - +
//! ```

/// Bytes of the header.
pub const HEADER_SIZE: usize = 16;

/// The longest payload a server takes.
const PAYLOAD_SIZE_MAX: usize = 64 << 20;

/// A header, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the payload.
    pub payload_size: usize,
    /// The number that the sender gave the frame; a reply has the number of its request.
    pub id: u64,
}

impl Header {
    /// Decodes the header at the start of `bytes`, if it is all there; `Err` if it is garbage.
    pub fn decode(bytes: &[u8]) -> Result<Option<Header>, Garbage> {
        let Some(header) = bytes.first_chunk::<HEADER_SIZE>() else {
            return Ok(None);
        };
        let [a, b, c, d, e, f, g, h, id @ ..] = *header;
        let payload_size = u32::from_le_bytes([a, b, c, d]) as usize;
        if [e, f, g, h] != [0; 4] || payload_size > PAYLOAD_SIZE_MAX {
            return Err(Garbage);
        }
        Ok(Some(Header {
            payload_size,
            id: u64::from_le_bytes(id),
        }))
    }

    /// The bytes of the header.
    pub fn encode(self) -> [u8; HEADER_SIZE] {
        let mut bytes = [0; HEADER_SIZE];
        bytes[..4].copy_from_slice(&(self.payload_size as u32).to_le_bytes());
        bytes[8..].copy_from_slice(&self.id.to_le_bytes());
        bytes
    }

    /// Bytes of the whole frame.
    pub fn frame_size(self) -> usize {
        HEADER_SIZE + self.payload_size
    }
}

/// Bytes that no program here has sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Garbage;

/// Bytes read from a socket that do not yet end with a complete frame.
pub struct Inbox {
    buffer: Vec<u8>,
    filled: usize,
}

impl Inbox {
    /// An inbox that takes up to `chunk_size` bytes in one read.
    pub fn new(chunk_size: usize) -> Inbox {
        Inbox {
            buffer: vec![0; chunk_size],
            filled: 0,
        }
    }

    /// Where the next read goes.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    /// Notes that `size` bytes were read into the space.
    pub fn advance(&mut self, size: usize) {
        self.filled += size;
    }

    /// What has been read and not consumed.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// The size of all complete frames at the start; makes room when a frame exceeds the buffer.
    pub fn complete(&mut self) -> Result<usize, Garbage> {
        let mut complete = 0;
        while let Some(header) = Header::decode(&self.buffer[complete..self.filled])? {
            if complete + header.frame_size() > self.filled {
                if header.frame_size() > self.buffer.len() {
                    self.buffer.resize(header.frame_size(), 0);
                }
                break;
            }
            complete += header.frame_size();
        }
        Ok(complete)
    }

    /// Drops `size` bytes from the start.
    pub fn consume(&mut self, size: usize) {
        self.buffer.copy_within(size..self.filled, 0);
        self.filled -= size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: u64, payload: &[u8]) -> Vec<u8> {
        let header = Header {
            payload_size: payload.len(),
            id,
        };
        [&header.encode()[..], payload].concat()
    }

    #[test]
    fn a_header_decodes_to_what_was_encoded() {
        let header = Header {
            payload_size: 128,
            id: 0x0102_0304_0506_0708,
        };
        assert_eq!(
            header.encode(),
            *b"\x80\0\0\0\0\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01"
        );
        assert_eq!(Header::decode(&header.encode()), Ok(Some(header)));
        assert_eq!(Header::decode(&header.encode()[..15]), Ok(None));
    }

    #[test]
    fn garbage_is_refused_before_it_is_waited_for() {
        assert_eq!(
            Header::decode(b"\xff\xff\xff\xff\0\0\0\0........"),
            Err(Garbage)
        );
        assert_eq!(
            Header::decode(b"\x01\0\0\0\x01\0\0\0........"),
            Err(Garbage)
        );
    }

    #[test]
    fn frames_are_whole_however_the_bytes_are_cut() {
        let sent: Vec<u8> = (0..20u64)
            .flat_map(|id| frame(id, &vec![id as u8; id as usize * 7]))
            .collect();
        for cut in 1..200 {
            let mut inbox = Inbox::new(32);
            let mut received = Vec::new();
            let mut rest = &sent[..];
            while !rest.is_empty() {
                let size = cut.min(rest.len()).min(inbox.space().len());
                inbox.space()[..size].copy_from_slice(&rest[..size]);
                inbox.advance(size);
                rest = &rest[size..];
                let complete = inbox.complete().unwrap();
                received.extend_from_slice(&inbox.bytes()[..complete]);
                inbox.consume(complete);
            }
            assert_eq!(received, sent, "cut into pieces of {cut}");
        }
    }
}
