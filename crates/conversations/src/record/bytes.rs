//! Encoding and decoding of the fields of a record.

use super::Malformed;

/// The remaining bytes of a record; every read is checked against them.
pub(super) struct FieldReader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) what: &'static str,
}

impl<'a> FieldReader<'a> {
    pub(super) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, what }
    }

    pub(super) fn malformed(&self) -> Malformed {
        Malformed { what: self.what }
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn text(&mut self, length: usize) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.take(length)?).map_err(|_| self.malformed())
    }

    pub(super) fn text8(&mut self) -> Result<&'a str, Malformed> {
        let length = self.u8()?;
        self.text(usize::from(length))
    }

    pub(super) fn text16(&mut self) -> Result<&'a str, Malformed> {
        let length = self.u16()?;
        self.text(usize::from(length))
    }

    pub(super) fn bytes32(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()?;
        let length = usize::try_from(length).map_err(|_| self.malformed())?;
        self.take(length)
    }

    /// Checks that no bytes remain.
    pub(super) fn end(self) -> Result<(), Malformed> {
        match self.bytes {
            [] => Ok(()),
            _ => Err(self.malformed()),
        }
    }
}

/// Appends fields. The caller ensures that texts and counts fit into their length fields.
pub(super) trait Put {
    fn text8(&mut self, text: &str);
    fn text16(&mut self, text: &str);
    fn bytes32(&mut self, bytes: &[u8]);
    fn u32(&mut self, number: u32);
    fn u64(&mut self, number: u64);
    fn count(&mut self, count: usize);
}

impl Put for Vec<u8> {
    fn text8(&mut self, text: &str) {
        let length = u8::try_from(text.len()).expect("at most 255 bytes were let in");
        self.push(length);
        self.extend_from_slice(text.as_bytes());
    }

    fn text16(&mut self, text: &str) {
        let length = u16::try_from(text.len()).expect("at most 65,535 bytes were let in");
        self.extend_from_slice(&length.to_le_bytes());
        self.extend_from_slice(text.as_bytes());
    }

    fn bytes32(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).expect("less than 4 GiB were let in");
        self.extend_from_slice(&length.to_le_bytes());
        self.extend_from_slice(bytes);
    }

    fn u32(&mut self, number: u32) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).expect("less than 2^32 were let in"));
    }
}
