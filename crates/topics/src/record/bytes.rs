//! Reading and writing the pieces of a record.

use super::Malformed;

/// The bytes that are left; every take is checked against them.
pub(super) struct Rest<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> Rest<'a> {
    pub(super) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, what }
    }

    pub(super) fn malformed(&self) -> Malformed {
        Malformed { what: self.what }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        let taken = self.bytes.split_at_checked(length);
        let (text, rest) = taken.ok_or(self.malformed())?;
        self.bytes = rest;
        std::str::from_utf8(text).map_err(|_| self.malformed())
    }

    /// As many as a count says; nothing is made for those that are not there.
    pub(super) fn each(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        for _ in 0..self.u32()? {
            one(self)?;
        }
        Ok(())
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), Malformed> {
        match self.bytes {
            [] => Ok(()),
            _ => Err(self.malformed()),
        }
    }
}

/// Appends the pieces. Whoever lets a text in bounds it.
pub(super) trait Put {
    fn put<const N: usize>(&mut self, bytes: [u8; N]);
    fn text(&mut self, text: &str);
    fn count(&mut self, count: usize);
}

impl Put for Vec<u8> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.extend_from_slice(&bytes);
    }

    fn text(&mut self, text: &str) {
        let length = u16::try_from(text.len()).expect("at most 65,535 bytes were let in");
        self.put(length.to_le_bytes());
        self.extend_from_slice(text.as_bytes());
    }

    fn count(&mut self, count: usize) {
        let count = u32::try_from(count).expect("less than 2^32 were let in");
        self.put(count.to_le_bytes());
    }
}
