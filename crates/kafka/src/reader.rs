//! Bounded decoding: every size is checked against the remaining bytes before it is used.

use bytes::Bytes;

/// Error of decoding a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {fault}")]
pub struct DecodeError {
    /// Name of the field in Kafka's schema.
    pub field: &'static str,
    /// Kind of error.
    pub fault: Fault,
}

/// Kind of a decoding error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The bytes end before the field.
    #[error("{needed} bytes needed, {left} left")]
    Truncated {
        /// Size of the field in bytes.
        needed: usize,
        /// Remaining bytes.
        left: usize,
    },
    /// An array announces more elements than there are bytes; each element has at least one byte.
    #[error("{count} elements announced, {left} bytes left")]
    Count {
        /// Announced number of elements.
        count: usize,
        /// Remaining bytes.
        left: usize,
    },
    /// The arrays of the message exceed the memory limit for a frame of this size.
    #[error("{needed} bytes of memory needed, {left} left")]
    Memory {
        /// Memory of the array in bytes.
        needed: usize,
        /// Memory left for the frame in bytes.
        left: usize,
    },
    /// A size that is negative and not null, or above the maximum of its type.
    #[error("size {0} is not allowed")]
    Size(i64),
    /// Null in a version that does not allow it.
    #[error("null is not allowed")]
    Null,
    /// A variable-length integer above 32 bits.
    #[error("variable-length integer above 32 bits")]
    Varint,
    /// Text that is not UTF-8.
    #[error("text is not UTF-8")]
    Utf8,
    /// Bytes remain after the message.
    #[error("{0} bytes too many")]
    Surplus(usize),
}

/// Memory limit in bytes for the arrays of any message.
const ARRAYS_SIZE_BASE: usize = 1 << 20;

/// Additional memory per byte of the frame. The shortest text has one byte on the wire and 24 in
/// memory; real messages contain few of those.
const ARRAYS_SIZE_FACTOR: usize = 4;

/// Encoding of a size in versions that are not flexible.
#[derive(Clone, Copy)]
pub enum Width {
    /// Two bytes, for texts.
    Short,
    /// Four bytes, for bytes and arrays.
    Long,
}

/// Position in a frame, with the version of the message.
#[derive(Debug)]
pub struct Reader<'a> {
    frame: &'a Bytes,
    rest: &'a [u8],
    version: i16,
    is_flexible: bool,
    field: &'static str,
    /// Memory left for arrays, in bytes.
    arrays_size_left: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `frame`.
    pub fn new(frame: &'a Bytes, version: i16, is_flexible: bool) -> Self {
        Self {
            frame,
            rest: frame,
            version,
            is_flexible,
            field: "frame",
            arrays_size_left: ARRAYS_SIZE_BASE + ARRAYS_SIZE_FACTOR * frame.len(),
        }
    }

    /// Sets the version of the following body.
    pub fn set_version(&mut self, version: i16, is_flexible: bool) {
        self.version = version;
        self.is_flexible = is_flexible;
    }

    /// Returns the version of the message.
    #[inline]
    pub fn version(&self) -> i16 {
        self.version
    }

    /// Sets the name of the next field, for errors.
    #[inline]
    pub fn at(&mut self, field: &'static str) {
        self.field = field;
    }

    /// Creates an error at the current field.
    pub fn error(&self, fault: Fault) -> DecodeError {
        DecodeError {
            field: self.field,
            fault,
        }
    }

    /// Returns the unread bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Fails if bytes are left.
    pub fn end(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            size => Err(self.error(Fault::Surplus(size))),
        }
    }

    /// Takes the next `size` bytes.
    #[inline]
    pub fn take(&mut self, size: usize) -> Result<&'a [u8], DecodeError> {
        let left = self.rest.len();
        let (taken, rest) = self
            .rest
            .split_at_checked(size)
            .ok_or_else(|| self.error(Fault::Truncated { needed: size, left }))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes the next `size` bytes, sharing the frame's memory.
    #[inline]
    pub fn take_shared(&mut self, size: usize) -> Result<Bytes, DecodeError> {
        self.take(size).map(|taken| self.frame.slice_ref(taken))
    }

    /// Takes the next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let left = self.rest.len();
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| self.error(Fault::Truncated { needed: N, left }))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads a text, with a compact size or a size of two bytes depending on the version.
    #[inline]
    pub fn text(&mut self) -> Result<Option<&'a str>, DecodeError> {
        let Some(size) = self.size(Width::Short)? else {
            return Ok(None);
        };
        if size > i16::MAX as usize {
            return Err(self.error(Fault::Size(size as i64)));
        }
        let bytes = self.take(size)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(self.error(Fault::Utf8)),
        }
    }

    /// Reads the number of elements of an array; an element has `element_size` bytes in memory.
    /// Fails if it exceeds the remaining bytes or the memory limit.
    #[inline]
    pub fn count(&mut self, element_size: usize) -> Result<Option<usize>, DecodeError> {
        let Some(count) = self.size(Width::Long)? else {
            return Ok(None);
        };
        let left = self.rest.len();
        if count > left {
            return Err(self.error(Fault::Count { count, left }));
        }
        let needed = count * element_size;
        let left = self.arrays_size_left;
        self.arrays_size_left = left
            .checked_sub(needed)
            .ok_or_else(|| self.error(Fault::Memory { needed, left }))?;
        Ok(Some(count))
    }

    /// Reads a size; `None` for null.
    #[inline]
    pub fn size(&mut self, width: Width) -> Result<Option<usize>, DecodeError> {
        if self.is_flexible {
            return Ok((self.uvarint()? as usize).checked_sub(1));
        }
        let size = match width {
            Width::Short => i32::from(i16::from_be_bytes(self.array()?)),
            Width::Long => i32::from_be_bytes(self.array()?),
        };
        match usize::try_from(size) {
            Ok(size) => Ok(Some(size)),
            Err(_) if size == -1 => Ok(None),
            Err(_) => Err(self.error(Fault::Size(size.into()))),
        }
    }

    /// Reads an unsigned variable-length integer: seven bits per byte, lowest first.
    #[inline]
    pub fn uvarint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array()?;
            if shift == 28 && byte > 0x0f {
                return Err(self.error(Fault::Varint));
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(value)
    }

    /// Reads the tagged fields at the end of a structure in flexible versions. `known` reads the
    /// value of a tag and returns true if it knows the tag; other fields are skipped.
    #[inline]
    pub fn tagged(
        &mut self,
        mut known: impl FnMut(u32, &mut Self) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        if !self.is_flexible {
            return Ok(());
        }
        self.at("tagged fields");
        for _ in 0..self.uvarint()? {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            let mut value = Reader {
                rest: self.take(size)?,
                ..*self
            };
            if known(tag, &mut value)? {
                value.end()?;
                self.arrays_size_left = value.arrays_size_left;
            }
        }
        Ok(())
    }
}
