//! Arbitrary messages for tests. Each field is generated from a source of bytes; a field that the
//! version lacks keeps its default, as after decoding.

use bytes::Bytes;

use crate::error_code::ErrorCode;
use crate::values::{Double, Records, Secret, Uuid};

/// Bytes that determine the generated values. When they are used up, values are zero, empty or
/// null.
pub(crate) struct Source<'a> {
    bytes: &'a [u8],
    version: i16,
}

impl<'a> Source<'a> {
    pub(crate) fn new(bytes: &'a [u8], version: i16) -> Self {
        Self { bytes, version }
    }

    pub(crate) fn version(&self) -> i16 {
        self.version
    }

    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        first
    }

    fn bytes(&mut self) -> Vec<u8> {
        // The compact size of longer values has two bytes.
        let size = match self.byte() {
            250.. => 300,
            size => usize::from(size % 12),
        };
        (0..size).map(|_| self.byte()).collect()
    }
}

/// A type with generated values.
pub(crate) trait Sample {
    fn sample(source: &mut Source<'_>) -> Self;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Sample for $number {
            fn sample(source: &mut Source<'_>) -> Self {
                match source.byte() {
                    0..200 => Self::from_be_bytes(std::array::from_fn(|_| source.byte())),
                    // The default values of fields must occur often.
                    200..228 => -1,
                    228..242 => 0,
                    242..249 => Self::MAX,
                    249.. => Self::MIN,
                }
            }
        }
    )*};
}

numbers!(i8 i16 i32 i64);

impl Sample for u16 {
    fn sample(source: &mut Source<'_>) -> Self {
        Self::from_be_bytes(std::array::from_fn(|_| source.byte()))
    }
}

impl Sample for bool {
    fn sample(source: &mut Source<'_>) -> Self {
        source.byte() & 1 == 1
    }
}

impl Sample for Double {
    fn sample(source: &mut Source<'_>) -> Self {
        let bytes = std::array::from_fn(|_| source.byte());
        Self(u64::from_be_bytes(bytes))
    }
}

impl Sample for Uuid {
    fn sample(source: &mut Source<'_>) -> Self {
        Self(std::array::from_fn(|_| source.byte()))
    }
}

impl Sample for ErrorCode {
    fn sample(source: &mut Source<'_>) -> Self {
        Self::ALL[usize::from(source.byte()) % Self::ALL.len()]
    }
}

impl Sample for String {
    fn sample(source: &mut Source<'_>) -> Self {
        String::from_utf8_lossy(&source.bytes()).into_owned()
    }
}

impl Sample for Bytes {
    fn sample(source: &mut Source<'_>) -> Self {
        source.bytes().into()
    }
}

impl Sample for Records {
    fn sample(source: &mut Source<'_>) -> Self {
        let mut records = Self::default();
        for _ in 0..source.byte() % 3 {
            records.push(Bytes::sample(source));
        }
        records
    }
}

impl Sample for Secret {
    fn sample(source: &mut Source<'_>) -> Self {
        Self(Bytes::sample(source))
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(source: &mut Source<'_>) -> Self {
        (source.byte() > 60).then(|| T::sample(source))
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(source: &mut Source<'_>) -> Self {
        (0..source.byte() % 4).map(|_| T::sample(source)).collect()
    }
}
