//! Bounded reading: every size is checked against the bytes that are left before it is used.

use bytes::Bytes;

/// Bytes that are not what their place in the protocol demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {fault}")]
pub struct DecodeError {
    /// The field, by its name in Kafka's schema.
    pub field: &'static str,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The bytes end before the field does.
    #[error("{needed} bytes needed, {left} left")]
    Truncated {
        /// What the field announces.
        needed: usize,
        /// What is there.
        left: usize,
    },
    /// More elements are announced than there are bytes, and each takes one at least.
    #[error("{count} elements announced, {left} bytes left")]
    Count {
        /// What the array announces.
        count: usize,
        /// What is there.
        left: usize,
    },
    /// The elements of all arrays together would take more memory than a message of this size has
    /// a reason to.
    #[error("{needed} bytes of memory needed, {left} left")]
    Memory {
        /// What the array would take.
        needed: usize,
        /// What is left of what the frame is allowed.
        left: usize,
    },
    /// A negative size that does not stand for null, or one above what the type allows.
    #[error("size {0} is not allowed")]
    Size(i64),
    /// Null where this version has none.
    #[error("null is not allowed")]
    Null,
    /// A variable-length integer above 32 bits.
    #[error("variable-length integer above 32 bits")]
    Varint,
    /// Text that is no UTF-8.
    #[error("text is not UTF-8")]
    Utf8,
    /// The message ends before the bytes do.
    #[error("{0} bytes too many")]
    Surplus(usize),
}

/// What the arrays of any message may take in memory.
const ARRAYS_SIZE_BASE: usize = 1 << 20;

/// What they may take more for each byte of the frame. The shortest text is one byte on the wire and
/// 24 in memory; real messages are far from full of those.
const ARRAYS_SIZE_FACTOR: usize = 4;

/// What a size on the wire is written as in the versions before the compact ones.
#[derive(Clone, Copy)]
pub enum Width {
    /// Texts.
    Short,
    /// Bytes and arrays.
    Long,
}

/// A position in a frame, and how the frame's version writes things.
#[derive(Debug)]
pub struct Reader<'a> {
    frame: &'a Bytes,
    rest: &'a [u8],
    version: i16,
    is_flexible: bool,
    field: &'static str,
    /// What the arrays that are still to come may take in memory.
    arrays_size_left: usize,
}

impl<'a> Reader<'a> {
    /// Reads `frame` from its start.
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

    /// From here on the body of a message: its version decides what is there.
    pub fn set_version(&mut self, version: i16, is_flexible: bool) {
        self.version = version;
        self.is_flexible = is_flexible;
    }

    /// The version of the message.
    #[inline]
    pub fn version(&self) -> i16 {
        self.version
    }

    /// Names what is read next, for errors.
    #[inline]
    pub fn at(&mut self, field: &'static str) {
        self.field = field;
    }

    /// An error at the field that is being read.
    pub fn error(&self, fault: Fault) -> DecodeError {
        DecodeError {
            field: self.field,
            fault,
        }
    }

    /// The bytes that nobody has read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Everything has been read.
    pub fn end(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            size => Err(self.error(Fault::Surplus(size))),
        }
    }

    /// The next `size` bytes.
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

    /// The next `size` bytes, sharing the frame's memory.
    #[inline]
    pub fn take_shared(&mut self, size: usize) -> Result<Bytes, DecodeError> {
        self.take(size).map(|taken| self.frame.slice_ref(taken))
    }

    /// The next `N` bytes, for a number.
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

    /// A text that this version writes with the size in two bytes, or compactly.
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

    /// How many elements of `element_size` bytes in memory an array announces: never more than
    /// there are bytes left, since each takes one at least, nor than may be kept in memory.
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

    /// A size, or `None` for null.
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

    /// An unsigned variable-length integer: seven bits a byte, the lowest first.
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

    /// The tagged fields at the end of a structure, in the versions that have them. `known` reads
    /// a field's value if it knows the tag; what nobody knows is skipped.
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
