//! Encoding and decoding of the field types in Kafka's schemas.
//!
//! Types: <https://kafka.apache.org/protocol#protocol_types>.

use bytes::Bytes;

use crate::error_code::ErrorCode;
use crate::reader::{DecodeError, Fault, Reader, Width};
use crate::values::{Double, Records, Secret, Uuid};
use crate::writer::Writer;

/// A type of a message field.
pub trait Field: Sized {
    /// Decodes a value at the reader's position.
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Encodes the value.
    fn write(&self, writer: &mut Writer<'_>);
}

/// A type with a null encoding.
pub trait Nullable: Field + Default {
    /// Decodes a value or null.
    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError>;

    /// Encodes a value or null.
    fn write_nullable(value: Option<&Self>, writer: &mut Writer<'_>);
}

/// Decodes a field that must not be null.
fn read_present<T: Nullable>(reader: &mut Reader<'_>) -> Result<T, DecodeError> {
    T::read_nullable(reader)?.ok_or_else(|| reader.error(Fault::Null))
}

/// Decodes a field that may be null in some versions only.
pub(crate) fn read_optional<T: Nullable>(
    reader: &mut Reader<'_>,
    is_nullable: bool,
) -> Result<Option<T>, DecodeError> {
    if is_nullable {
        T::read_nullable(reader)
    } else {
        T::read(reader).map(Some)
    }
}

/// Encodes a field that may be null in some versions only; in the others null becomes empty.
pub(crate) fn write_optional<T: Nullable>(
    value: Option<&T>,
    writer: &mut Writer<'_>,
    is_nullable: bool,
) {
    match value {
        None if !is_nullable => T::default().write(writer),
        value => T::write_nullable(value, writer),
    }
}

impl<T: Nullable> Field for Option<T> {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::read_nullable(reader)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        T::write_nullable(self.as_ref(), writer);
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Field for $number {
            #[inline]
            fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                reader.array().map(Self::from_be_bytes)
            }

            #[inline]
            fn write(&self, writer: &mut Writer<'_>) {
                writer.put(&self.to_be_bytes());
            }
        }
    )*};
}

numbers!(i8 i16 u16 i32 i64);

impl Field for bool {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.array().map(|[byte]| byte != 0)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&[u8::from(*self)]);
    }
}

impl Field for Double {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.array().map(|bytes| Self(u64::from_be_bytes(bytes)))
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&self.0.to_be_bytes());
    }
}

impl Field for Uuid {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.array().map(Self)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&self.0);
    }
}

impl Field for ErrorCode {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        i16::read(reader).map(Self::from)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.error_code(*self);
    }
}

impl Nullable for String {
    #[inline]
    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        Ok(reader.text()?.map(str::to_owned))
    }

    #[inline]
    fn write_nullable(value: Option<&Self>, writer: &mut Writer<'_>) {
        writer.text(value.map(String::as_str));
    }
}

impl Nullable for Bytes {
    #[inline]
    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        let size = reader.size(Width::Long)?;
        size.map(|size| reader.take_shared(size)).transpose()
    }

    #[inline]
    fn write_nullable(value: Option<&Self>, writer: &mut Writer<'_>) {
        writer.size(value.map(Bytes::len));
        writer.put(value.map(Bytes::as_ref).unwrap_or_default());
    }
}

impl Nullable for Records {
    #[inline]
    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        Ok(Bytes::read_nullable(reader)?.map(Self::from))
    }

    #[inline]
    fn write_nullable(value: Option<&Self>, writer: &mut Writer<'_>) {
        writer.size(value.map(Records::size));
        for piece in value.into_iter().flat_map(Records::pieces) {
            writer.put(piece);
        }
        writer.leave_out(value.map_or(0, Records::left_out_size));
    }
}

impl Nullable for Secret {
    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        Ok(Bytes::read_nullable(reader)?.map(Self))
    }

    fn write_nullable(value: Option<&Self>, writer: &mut Writer<'_>) {
        Bytes::write_nullable(value.map(|secret| &secret.0), writer);
    }
}

impl<T: Field> Nullable for Vec<T> {
    /// Reserves at first no more memory than the bytes left in the frame; the array then grows with
    /// its elements, up to the announced count.
    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        let Some(count) = reader.count(size_of::<T>())? else {
            return Ok(None);
        };
        let mut elements = Vec::with_capacity(count.min(reader.rest().len() / size_of::<T>()));
        for index in 0..count {
            if index == elements.capacity() {
                elements.reserve_exact((count - index).min(index.max(1)));
            }
            elements.push(T::read(reader)?);
        }
        Ok(Some(elements))
    }

    fn write_nullable(value: Option<&Self>, writer: &mut Writer<'_>) {
        writer.size(value.map(Vec::len));
        for element in value.into_iter().flatten() {
            element.write(writer);
        }
    }
}

macro_rules! present {
    ($($type:ty)*) => {$(
        impl Field for $type {
            #[inline]
            fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                read_present(reader)
            }

            #[inline]
            fn write(&self, writer: &mut Writer<'_>) {
                Self::write_nullable(Some(self), writer);
            }
        }
    )*};
}

present!(String Bytes Records Secret);

impl<T: Field> Field for Vec<T> {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        read_present(reader)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        Self::write_nullable(Some(self), writer);
    }
}
