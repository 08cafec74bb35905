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

    fn malformed(&self) -> Malformed {
        Malformed { what: self.what }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(super) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(self.malformed()),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = u16::from_le_bytes(self.array()?);
        let bytes = self.take(usize::from(length))?;
        std::str::from_utf8(bytes).map_err(|_| self.malformed())
    }

    pub(super) fn name(&mut self) -> Result<Option<&'a str>, Malformed> {
        match self.flag()? {
            false => Ok(None),
            true => self.text().map(Some),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()?;
        let length = usize::try_from(length).map_err(|_| self.malformed())?;
        self.take(length)
    }

    /// Every element takes at least a byte, so what a lying count can cost is in the bytes.
    pub(super) fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()?;
        (0..count).map(|_| element(self)).collect()
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), Malformed> {
        match self.bytes {
            [] => Ok(()),
            _ => Err(self.malformed()),
        }
    }
}

/// Appends the pieces.
pub(super) trait Put {
    fn u32(&mut self, number: u32);
    fn u64(&mut self, number: u64);
    fn i32(&mut self, number: i32);
    fn i64(&mut self, number: i64);
    fn text(&mut self, text: &str);
    fn name(&mut self, name: Option<&str>);
    fn bytes(&mut self, bytes: &[u8]);
    fn list<T>(&mut self, elements: &[T], element: impl FnMut(&mut Self, &T));
}

impl Put for Vec<u8> {
    fn u32(&mut self, number: u32) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn i32(&mut self, number: i32) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn i64(&mut self, number: i64) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        let length = u16::try_from(text.len()).expect("at most 65,535 bytes were let in");
        self.extend_from_slice(&length.to_le_bytes());
        self.extend_from_slice(text.as_bytes());
    }

    fn name(&mut self, name: Option<&str>) {
        self.push(u8::from(name.is_some()));
        if let Some(name) = name {
            self.text(name);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.u32(u32::try_from(bytes.len()).expect("less than 4 GiB were let in"));
        self.extend_from_slice(bytes);
    }

    fn list<T>(&mut self, elements: &[T], mut element: impl FnMut(&mut Self, &T)) {
        self.u32(u32::try_from(elements.len()).expect("less than 2^32 were let in"));
        for it in elements {
            element(self, it);
        }
    }
}
