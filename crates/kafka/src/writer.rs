//! Encoding: an error is stored and returned at the end.

use crate::error_code::ErrorCode;

/// A value that the protocol cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A text above 32,767 bytes.
    #[error("text of {0} bytes is above the limit of {max}", max = i16::MAX)]
    Text(usize),
    /// An array, byte string or frame above 2,147,483,647.
    #[error("size {0} is above the limit of {max}", max = i32::MAX)]
    Size(usize),
    /// Bytes that the caller has to insert, in a message where it cannot.
    #[error("{0} bytes of records were left out")]
    LeftOut(usize),
}

/// A place in an encoded frame at which the caller inserts bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The bytes of the output before it.
    pub at: usize,
    /// The bytes to insert.
    pub size: usize,
}

/// Output buffer with the version of the message.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    version: i16,
    is_flexible: bool,
    fault: Option<EncodeError>,
    /// Error codes in the message so far.
    errors: Vec<ErrorCode>,
    gaps: Vec<Gap>,
}

impl<'a> Writer<'a> {
    /// Creates a writer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>, version: i16, is_flexible: bool) -> Self {
        Self {
            out,
            version,
            is_flexible,
            fault: None,
            errors: Vec::new(),
            gaps: Vec::new(),
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

    /// Returns the error codes in the message and the places to insert bytes at, or the stored error.
    pub fn finish(self) -> Result<(Vec<ErrorCode>, Vec<Gap>), EncodeError> {
        self.fault.map_or(Ok((self.errors, self.gaps)), Err)
    }

    /// Leaves out so many bytes, which the caller inserts.
    pub fn leave_out(&mut self, size: usize) {
        if size > 0 {
            let at = self.out.len();
            self.gaps.push(Gap { at, size });
        }
    }

    /// Writes an error code and remembers it if it is an error.
    #[inline]
    pub fn error_code(&mut self, code: ErrorCode) {
        if code.is_error() {
            self.errors.push(code);
        }
        self.put(&code.code().to_be_bytes());
    }

    /// Writes bytes without a size.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Writes a text or null.
    #[inline]
    pub fn text(&mut self, text: Option<&str>) {
        let size = text.map(str::len);
        match size.map(i16::try_from).transpose() {
            Ok(_) if self.is_flexible => self.compact(size),
            Ok(size) => self.put(&size.unwrap_or(-1).to_be_bytes()),
            Err(_) => self.fault = size.map(EncodeError::Text),
        }
        self.put(text.unwrap_or_default().as_bytes());
    }

    /// Writes the size of bytes, the count of an array, or null.
    #[inline]
    pub fn size(&mut self, size: Option<usize>) {
        match size.map(i32::try_from).transpose() {
            Ok(_) if self.is_flexible => self.compact(size),
            Ok(size) => self.put(&size.unwrap_or(-1).to_be_bytes()),
            Err(_) => self.fault = size.map(EncodeError::Size),
        }
    }

    /// Writes a compact size: the size plus one, 0 for null.
    fn compact(&mut self, size: Option<usize>) {
        self.uvarint(size.map_or(0, |size| size as u32 + 1));
    }

    /// Writes an unsigned variable-length integer: seven bits per byte, lowest first.
    #[inline]
    pub fn uvarint(&mut self, mut value: u32) {
        while value > 0x7f {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// Writes the tagged fields at the end of a structure in flexible versions. `put` adds the
    /// fields that differ from their default, in order of their tags.
    #[inline]
    pub fn tagged(&mut self, put: impl FnOnce(&mut Tags)) {
        if !self.is_flexible {
            return;
        }
        let mut tags = Tags {
            version: self.version,
            count: 0,
            bytes: Vec::new(),
            fault: None,
        };
        put(&mut tags);
        self.uvarint(tags.count);
        self.put(&tags.bytes);
        self.fault = self.fault.or(tags.fault);
    }
}

/// Tagged fields in progress; each is preceded by its size.
#[derive(Debug)]
pub struct Tags {
    version: i16,
    count: u32,
    bytes: Vec<u8>,
    fault: Option<EncodeError>,
}

impl Tags {
    /// Adds a field.
    pub fn put(&mut self, tag: u32, write: impl FnOnce(&mut Writer<'_>)) {
        let mut value = Vec::new();
        let mut writer = Writer::new(&mut value, self.version, true);
        write(&mut writer);
        self.fault = self.fault.or(writer.fault);
        if let Some(gap) = writer.gaps.first() {
            self.fault = Some(EncodeError::LeftOut(gap.size));
        }
        let mut writer = Writer::new(&mut self.bytes, self.version, true);
        writer.uvarint(tag);
        match u32::try_from(value.len()) {
            Ok(size) => writer.uvarint(size),
            Err(_) => self.fault = Some(EncodeError::Size(value.len())),
        }
        self.bytes.extend_from_slice(&value);
        self.count += 1;
    }
}
