//! Writing: what cannot be said in the protocol is remembered, and refused at the end.

use crate::error_code::ErrorCode;

/// A message that the protocol cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A text has a size of at most 32,767 bytes.
    #[error("a text of {0} bytes is above {max}", max = i16::MAX)]
    Text(usize),
    /// An array, bytes or a frame have a size of at most 2,147,483,647.
    #[error("a size of {0} is above {max}", max = i32::MAX)]
    Size(usize),
}

/// The end of a buffer, and how the message's version writes things.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    version: i16,
    is_flexible: bool,
    fault: Option<EncodeError>,
    /// Those that the message says.
    errors: Vec<ErrorCode>,
}

impl<'a> Writer<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>, version: i16, is_flexible: bool) -> Self {
        Self {
            out,
            version,
            is_flexible,
            fault: None,
            errors: Vec::new(),
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

    /// Whether everything could be said; the errors that the message says.
    pub fn finish(self) -> Result<Vec<ErrorCode>, EncodeError> {
        self.fault.map_or(Ok(self.errors), Err)
    }

    /// The message says what became of something.
    #[inline]
    pub fn error_code(&mut self, code: ErrorCode) {
        if code.is_error() {
            self.errors.push(code);
        }
        self.put(&code.code().to_be_bytes());
    }

    /// Bytes as they are.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A text, or null.
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

    /// The size of bytes or the count of an array, or null.
    #[inline]
    pub fn size(&mut self, size: Option<usize>) {
        match size.map(i32::try_from).transpose() {
            Ok(_) if self.is_flexible => self.compact(size),
            Ok(size) => self.put(&size.unwrap_or(-1).to_be_bytes()),
            Err(_) => self.fault = size.map(EncodeError::Size),
        }
    }

    /// A size plus one, so that nought is null.
    fn compact(&mut self, size: Option<usize>) {
        self.uvarint(size.map_or(0, |size| size as u32 + 1));
    }

    /// An unsigned variable-length integer: seven bits a byte, the lowest first.
    #[inline]
    pub fn uvarint(&mut self, mut value: u32) {
        while value > 0x7f {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// The tagged fields at the end of a structure, in the versions that have them: `put` adds
    /// those that are not what they are by default, the lowest tag first.
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

/// Tagged fields on their way: each stands behind its size.
#[derive(Debug)]
pub struct Tags {
    version: i16,
    count: u32,
    bytes: Vec<u8>,
    fault: Option<EncodeError>,
}

impl Tags {
    /// One more field.
    pub fn put(&mut self, tag: u32, write: impl FnOnce(&mut Writer<'_>)) {
        let mut value = Vec::new();
        let mut writer = Writer::new(&mut value, self.version, true);
        write(&mut writer);
        self.fault = self.fault.or(writer.fault);
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
