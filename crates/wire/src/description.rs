//! Descriptions of agents: what an agent does, and the methods that it answers.

use crate::cursor::{Cursor, Malformed, put_sized, put_text8, put_text16};

/// Flag of a method: it answers with items.
const STREAMED: u8 = 0x01;

/// A description of an agent, after the name of a SUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description<'a> {
    /// Version of the agent; empty for none.
    pub version: &'a str,
    /// Purpose of the agent, for people and models.
    pub text: &'a str,
    /// The methods.
    pub methods: DescribedMethods<'a>,
}

/// The methods of a description, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DescribedMethods<'a> {
    count: u16,
    bytes: &'a [u8],
}

/// A method of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescribedMethod<'a> {
    /// Name; empty for plain messages.
    pub name: &'a str,
    /// True if it answers with items.
    pub is_streamed: bool,
    /// Purpose of the method, for people and models.
    pub text: &'a str,
    /// JSON Schema of the body of a request, as JSON text; empty for none.
    pub input: &'a str,
    /// JSON Schema of the answer or of one item, as JSON text; empty for none.
    pub output: &'a str,
}

impl<'a> Description<'a> {
    /// Decodes a description, with every method.
    pub(crate) fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let (version, text, count) = (cursor.text8()?, cursor.text16()?, cursor.u16()?);
        let bytes = cursor.rest();
        for _ in 0..count {
            DescribedMethod::decode(cursor)?;
        }
        let bytes = &bytes[..bytes.len() - cursor.rest().len()];
        Ok(Self {
            version,
            text,
            methods: DescribedMethods { count, bytes },
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_text8(out, self.version);
        put_text16(out, self.text);
        out.extend_from_slice(&self.methods.count.to_le_bytes());
        out.extend_from_slice(self.methods.bytes);
    }
}

impl<'a> DescribedMethods<'a> {
    /// Encodes methods into a buffer, which holds the result. Methods after the 65,535th are left
    /// out.
    pub fn encode<'m>(
        methods: impl Iterator<Item = DescribedMethod<'m>>,
        buffer: &'a mut Vec<u8>,
    ) -> Self {
        let mut count = 0;
        for method in methods.take(usize::from(u16::MAX)) {
            method.encode(buffer);
            count += 1;
        }
        Self {
            count,
            bytes: buffer,
        }
    }

    /// Iterates over the methods.
    pub fn iter(&self) -> impl Iterator<Item = DescribedMethod<'a>> + use<'a> {
        let mut cursor = Cursor::new(self.bytes, "description");
        // All methods were decoded once, or encoded here.
        std::iter::from_fn(move || match cursor.is_empty() {
            true => None,
            false => DescribedMethod::decode(&mut cursor).ok(),
        })
    }

    /// Returns the number of methods.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Returns true if there are no methods.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'a> DescribedMethod<'a> {
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            name: cursor.text8()?,
            is_streamed: cursor.u8()? & STREAMED != 0,
            text: cursor.text16()?,
            input: cursor.text32()?,
            output: cursor.text32()?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_text8(out, self.name);
        out.push(if self.is_streamed { STREAMED } else { 0 });
        put_text16(out, self.text);
        for schema in [self.input, self.output] {
            put_sized(out, |out| out.extend_from_slice(schema.as_bytes()));
        }
    }
}
