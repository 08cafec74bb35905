//! Decoding and encoding of protocol buffers at the level of fields.

/// Error of decoding a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end within a field.
    #[error("the message ends within a field")]
    Truncated,
    /// A varint of more than 64 bits.
    #[error("a number has more than 64 bits")]
    Number,
    /// Field number 0 or above 2^29, or an obsolete wire type.
    #[error("a field has an invalid tag")]
    Tag,
    /// A known field has another wire type.
    #[error("field {0} has the wrong type")]
    Type(u32),
    /// A text that is not UTF-8.
    #[error("field {0} is not UTF-8")]
    Text(u32),
    /// A field that must occur once is repeated.
    #[error("field {0} occurs twice")]
    Twice(u32),
    /// A required part is missing.
    #[error("the message has no {0}")]
    Missing(&'static str),
}

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// A field with its position in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    /// Offset of the tag.
    pub(crate) start: usize,
    /// Offset of the first byte of a `Bytes` value.
    pub(crate) value_start: usize,
    /// Offset after the last byte.
    pub(crate) end: usize,
    pub(crate) value: Value<'a>,
}

impl<'a> Field<'a> {
    pub(crate) fn number(&self) -> Result<u64, Malformed> {
        match self.value {
            Value::Number(number) => Ok(number),
            _ => Err(Malformed::Type(self.number)),
        }
    }

    pub(crate) fn bytes(&self) -> Result<&'a [u8], Malformed> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed::Type(self.number)),
        }
    }

    pub(crate) fn text(&self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed::Text(self.number))
    }
}

/// Iterates over the fields of a message.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the next field; `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Field<'a>>, Malformed> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let start = self.at;
        let tag = u32::try_from(self.varint()?).map_err(|_| Malformed::Tag)?;
        let number = tag >> 3;
        if number == 0 {
            return Err(Malformed::Tag);
        }
        let mut value_start = self.at;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.skip(8)?,
            2 => {
                let size = usize::try_from(self.varint()?).map_err(|_| Malformed::Truncated)?;
                value_start = self.at;
                Value::Bytes(self.take(size)?)
            }
            5 => self.skip(4)?,
            _ => return Err(Malformed::Tag),
        };
        Ok(Some(Field {
            number,
            start,
            value_start,
            end: self.at,
            value,
        }))
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or(Malformed::Truncated)?;
            self.at += 1;
            if shift == 63 && byte > 1 {
                return Err(Malformed::Number);
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed::Number)
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8], Malformed> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..size).ok_or(Malformed::Truncated)?;
        self.at += size;
        Ok(taken)
    }

    fn skip(&mut self, size: usize) -> Result<Value<'a>, Malformed> {
        self.take(size).map(|_| Value::Fixed)
    }
}

/// Returns the encoded size of a varint in bytes.
pub(crate) fn varint_size(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

pub(crate) fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes the tag and size of a field; `size` bytes must follow.
pub(crate) fn put_size(field: u32, size: usize, out: &mut Vec<u8>) {
    put_varint(u64::from(field << 3 | 2), out);
    put_varint(size as u64, out);
}

pub(crate) fn put_number(field: u32, number: u64, out: &mut Vec<u8>) {
    put_varint(u64::from(field << 3), out);
    put_varint(number, out);
}

pub(crate) fn put_bytes(field: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_size(field, bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Writes a field whose bytes are produced by `write`.
pub(crate) fn put_nested(field: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    write(&mut inner);
    put_bytes(field, &inner, out);
}
