//! Labels: the pairs of texts in metadata by which conversations are searched.
//!
//! `{"user":"alice","team":{"id":7},"tags":["a","b"]}` has the labels `user=alice`, `team.id=7`,
//! `tags=a` and `tags=b`. A number or a boolean is its JSON text; `null` has no label.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The deepest nesting of objects and arrays; deeper values have no labels.
const DEPTH_MAX: usize = 8;

/// Passes each label to `tell`, in the order of the bytes. Invalid JSON yields the labels before
/// the error.
pub fn labels(metadata: &[u8], tell: &mut dyn FnMut(&str, &str)) {
    let mut reader = serde_json::Deserializer::from_slice(metadata);
    let mut path = String::new();
    let seed = Telling {
        path: &mut path,
        depth: 0,
        tell,
    };
    // Metadata is validated before it is stored.
    let _ = seed.deserialize(&mut reader);
}

struct Telling<'a> {
    /// The keys, separated by dots.
    path: &'a mut String,
    depth: usize,
    tell: &'a mut dyn FnMut(&str, &str),
}

impl Telling<'_> {
    fn tell(self, value: &str) {
        if self.depth > 0 {
            (self.tell)(self.path, value);
        }
    }

    fn inner(&mut self) -> Telling<'_> {
        Telling {
            path: self.path,
            depth: self.depth + 1,
            tell: self.tell,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Telling<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth > DEPTH_MAX {
            return deserializer.deserialize_any(IgnoredAny).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Telling<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.tell(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.tell(&value.to_string());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.tell(&value.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        if let Some(number) = serde_json::Number::from_f64(value) {
            self.tell(&number.to_string());
        }
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.tell(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.inner())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<String>()? {
            let length = self.path.len();
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            members.next_value_seed(self.inner())?;
            self.path.truncate(length);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(metadata: &str) -> Vec<String> {
        let mut told = Vec::new();
        labels(metadata.as_bytes(), &mut |key, value| {
            told.push(format!("{key}={value}"))
        });
        told
    }

    #[test]
    fn each_scalar_is_a_label_named_by_its_path() {
        let metadata = r#"{"user":"al\u0069ce","team":{"id":7,"open":true},"tags":["a","b"],
            "x":null,"share":1.5,"below":-3}"#;
        let expected = [
            "user=alice",
            "team.id=7",
            "team.open=true",
            "tags=a",
            "tags=b",
            "share=1.5",
            "below=-3",
        ];
        assert_eq!(told(metadata), expected);
        assert_eq!(told(""), [""; 0]);
        assert_eq!(told("\"alone\""), [""; 0]);
        assert_eq!(told(r#"{"a":1,"b"#), ["a=1"]);
    }

    #[test]
    fn values_nested_too_deep_are_ignored() {
        let deep = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert_eq!(told(&deep(DEPTH_MAX)), ["a.a.a.a.a.a.a.a=1"]);
        assert_eq!(told(&deep(DEPTH_MAX + 1)), [""; 0]);
        assert_eq!(told(&deep(10_000)), [""; 0]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            labels(&bytes, &mut |_, _| {});
        }
    }
}
