//! What messages carry besides numbers, texts and arrays.

use std::fmt;

use bytes::Bytes;

/// A topic's id, as 16 bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// No id.
    pub const ZERO: Self = Self([0; 16]);

    /// Whether it stands for no id.
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let dash = if matches!(index, 4 | 6 | 8 | 10) {
                "-"
            } else {
                ""
            };
            write!(formatter, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// Record batches, one after the other, as they are stored: opaque here.
///
/// What is read shares the frame's memory. What is written may come in pieces, so that nobody
/// has to join them first.
#[derive(Clone, Default)]
pub struct Records {
    first: Bytes,
    more: Vec<Bytes>,
}

impl Records {
    /// Appends a piece.
    pub fn push(&mut self, piece: Bytes) {
        if self.first.is_empty() {
            self.first = piece;
        } else {
            self.more.push(piece);
        }
    }

    /// The pieces, in their order.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// Bytes in all pieces together.
    pub fn size(&self) -> usize {
        self.pieces().map(Bytes::len).sum()
    }

    /// Whether there is no batch.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// Everything in one piece: as it is if it was read from a frame, else joined.
    pub fn into_bytes(self) -> Bytes {
        if self.more.is_empty() {
            return self.first;
        }
        self.pieces().flatten().copied().collect()
    }
}

impl From<Bytes> for Records {
    fn from(first: Bytes) -> Self {
        Self {
            first,
            more: Vec::new(),
        }
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.pieces().flatten().eq(other.pieces().flatten())
    }
}

impl Eq for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.size())
    }
}

/// A number of 64 bits with a fraction, as IEEE 754 writes it: it goes as it came.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Double(pub u64);

impl fmt::Debug for Double {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", f64::from_bits(self.0))
    }
}

/// What a client proves itself with. It is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub Bytes);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.0.len())
    }
}
