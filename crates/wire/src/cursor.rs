//! Bounds-checked reading of payloads.

/// A payload with an invalid layout for its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what}")]
pub struct Malformed {
    /// Name of the payload that was being read.
    pub what: &'static str,
}

/// A read position in a payload.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(Malformed { what: self.what })?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(Malformed { what: self.what })?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a text with a one-byte length prefix.
    pub(crate) fn text8(&mut self) -> Result<&'a str, Malformed> {
        let length = self.u8()?;
        self.text(usize::from(length))
    }

    /// Reads a text with a two-byte length prefix.
    pub(crate) fn text16(&mut self) -> Result<&'a str, Malformed> {
        let length = self.u16()?;
        self.text(usize::from(length))
    }

    /// Reads a text with a four-byte length prefix.
    pub(crate) fn text32(&mut self) -> Result<&'a str, Malformed> {
        let length = self.u32()?;
        self.text(length as usize)
    }

    fn text(&mut self, length: usize) -> Result<&'a str, Malformed> {
        let what = self.what;
        std::str::from_utf8(self.take(length)?).map_err(|_| Malformed { what })
    }

    #[inline]
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn malformed(&self) -> Malformed {
        Malformed { what: self.what }
    }
}

/// Appends a text with a one-byte length prefix. A longer text is cut at a character boundary.
pub(crate) fn put_text8(out: &mut Vec<u8>, text: &str) {
    let text = cut(text, usize::from(u8::MAX));
    out.push(text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a text with a two-byte length prefix. A longer text is cut at a character boundary.
pub(crate) fn put_text16(out: &mut Vec<u8>, text: &str) {
    let text = cut(text, usize::from(u16::MAX));
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Appends the bytes that `fill` writes, with a 32-bit length prefix.
pub(crate) fn put_sized(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Returns the longest prefix of at most `length_max` bytes that ends at a character boundary.
pub(crate) fn cut(text: &str, length_max: usize) -> &str {
    &text[..text.floor_char_boundary(length_max)]
}
