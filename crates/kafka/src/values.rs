//! Types of fields other than numbers, texts and arrays.

use std::fmt;

use bytes::Bytes;

/// UUID of a topic.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// UUID for *none*.
    pub const ZERO: Self = Self([0; 16]);

    /// True if this is [`Uuid::ZERO`].
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

/// Record batches in their stored format; opaque in this crate.
///
/// Decoded records share the frame's memory. Records to encode may consist of several pieces, which
/// are not joined first, or be left out of the encoded frame, in which the caller inserts them
/// ([`crate::encode_response_around`]).
#[derive(Clone, Default)]
pub struct Records {
    first: Bytes,
    more: Vec<Bytes>,
    /// Bytes after the pieces that the caller inserts.
    left_out: usize,
}

impl Records {
    /// Creates records of so many bytes that the caller inserts into the encoded frame.
    pub fn left_out(size: usize) -> Self {
        Self {
            left_out: size,
            ..Self::default()
        }
    }

    /// Returns the number of bytes that the caller inserts.
    pub(crate) fn left_out_size(&self) -> usize {
        self.left_out
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: Bytes) {
        if self.first.is_empty() {
            self.first = piece;
        } else {
            self.more.push(piece);
        }
    }

    /// Iterates over the pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// Returns the size in bytes, with those that the caller inserts.
    pub fn size(&self) -> usize {
        self.pieces().map(Bytes::len).sum::<usize>() + self.left_out
    }

    /// True without any bytes.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// Returns the pieces as one; joins them only if there are several.
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
            ..Self::default()
        }
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.left_out == other.left_out && self.pieces().flatten().eq(other.pieces().flatten())
    }
}

impl Eq for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.size())
    }
}

/// A 64-bit floating-point number (IEEE 754), kept as its bits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Double(pub u64);

impl fmt::Debug for Double {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", f64::from_bits(self.0))
    }
}

/// Credentials of a client. `Debug` shows only their size.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub Bytes);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.0.len())
    }
}
