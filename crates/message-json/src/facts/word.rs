//! A field that is only used if it is a text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A text, borrowed if it has no escapes, or any other value, which is skipped.
#[derive(Debug, Default)]
pub(super) enum Word<'a> {
    /// The field is absent.
    #[default]
    Absent,
    /// A text.
    Text(Cow<'a, str>),
    /// Any other value.
    Other,
}

impl<'a> Word<'a> {
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Other => None,
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Word<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Word<'de>, E> {
        Ok(Word::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Word<'de>, E> {
        Ok(Word::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Word<'de>, E> {
        Ok(Word::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Word<'de>, E> {
        Ok(Word::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Word<'de>, E> {
        Ok(Word::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Word<'de>, E> {
        Ok(Word::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Word<'de>, E> {
        Ok(Word::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Word<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Word::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Word<'de>, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Word::Other)
    }
}
