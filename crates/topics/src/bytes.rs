//! Encoding and decoding of the fields of a record.

use crate::record::Malformed;

/// The bytes that have not been decoded yet; every read is checked against their length.
pub(crate) struct Rest<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> Rest<'a> {
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, what }
    }

    pub(crate) fn malformed(&self) -> Malformed {
        Malformed { what: self.what }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_le_bytes(self.array()?))
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(self.malformed()),
        }
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = u16::from_le_bytes(self.array()?);
        let text = self.take(usize::from(length))?;
        std::str::from_utf8(text).map_err(|_| self.malformed())
    }

    pub(crate) fn name(&mut self) -> Result<Option<&'a str>, Malformed> {
        match self.flag()? {
            false => Ok(None),
            true => self.text().map(Some),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()?;
        let length = usize::try_from(length).map_err(|_| self.malformed())?;
        self.take(length)
    }

    /// Decodes as many elements as the count says; nothing is allocated for missing ones.
    pub(crate) fn each(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        for _ in 0..self.u32()? {
            one(self)?;
        }
        Ok(())
    }

    /// Decodes a list. Each element takes at least one byte, so a false count cannot cost more
    /// memory than the bytes allow.
    pub(crate) fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()?;
        (0..count).map(|_| element(self)).collect()
    }

    /// Fails if bytes are left.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        match self.bytes {
            [] => Ok(()),
            _ => Err(self.malformed()),
        }
    }
}

/// Appends the fields of a record. The length of a text is checked before it gets here.
pub(crate) trait Put {
    fn put<const N: usize>(&mut self, bytes: [u8; N]);
    fn text(&mut self, text: &str);
    fn name(&mut self, name: Option<&str>);
    fn bytes(&mut self, bytes: &[u8]);
    fn list<T>(&mut self, elements: &[T], element: impl FnMut(&mut Self, &T));
    fn count(&mut self, count: usize);
}

impl Put for Vec<u8> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.extend_from_slice(&bytes);
    }

    fn text(&mut self, text: &str) {
        let length = u16::try_from(text.len()).expect("at most 65,535 bytes were accepted");
        self.put(length.to_le_bytes());
        self.extend_from_slice(text.as_bytes());
    }

    fn name(&mut self, name: Option<&str>) {
        self.push(u8::from(name.is_some()));
        if let Some(name) = name {
            self.text(name);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).expect("less than 4 GiB were accepted");
        self.put(length.to_le_bytes());
        self.extend_from_slice(bytes);
    }

    fn list<T>(&mut self, elements: &[T], mut element: impl FnMut(&mut Self, &T)) {
        self.count(elements.len());
        for it in elements {
            element(self, it);
        }
    }

    fn count(&mut self, count: usize) {
        let count = u32::try_from(count).expect("less than 2^32 were accepted");
        self.put(count.to_le_bytes());
    }
}
