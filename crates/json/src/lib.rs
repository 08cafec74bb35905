//! JSON as bytes: nesting depth, and changes of objects that leave values as they are.
//!
//! Clients get their JSON back byte for byte, so numbers, escapes and the order of keys are
//! preserved: values stay [`RawValue`]s. No serialized type and no protocol is known here.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The deepest nesting of objects and arrays: parsers have limits, and 64 is not above the usual
/// ones (`serde_json` 128, .NET 64).
pub const DEPTH_MAX: usize = 64;

/// Returns how deep objects and arrays are nested in `json`, which is valid JSON.
pub fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut rest = json;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => rest = behind_string(rest),
            _ => {}
        }
    }
    deepest
}

/// Returns the rest after a string whose opening quote was read.
pub fn behind_string(mut json: &[u8]) -> &[u8] {
    while let Some(place) = memchr::memchr2(b'"', b'\\', json) {
        match json[place] {
            b'"' => return &json[place + 1..],
            _ => json = json.get(place + 2..).unwrap_or_default(),
        }
    }
    &[]
}

/// Returns the rest after a string whose opening quote was read; `None` if the string is not valid
/// JSON: it has no end, an unescaped control character, or an unknown escape.
pub fn behind_valid_string(json: &str) -> Option<&str> {
    let mut at = 0;
    loop {
        let rest = &json.as_bytes()[at..];
        let place = special(rest)?;
        let size = match rest[place..] {
            [b'"', ..] => return json.get(at + place + 1..),
            [
                b'\\',
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't',
                ..,
            ] => 2,
            [b'\\', b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        at += place + size;
    }
}

/// Returns the place of the first byte that a string does not have as it is: a quote, a backslash or
/// a control character.
fn special(json: &[u8]) -> Option<usize> {
    let is_special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    // Without an early end, so that a chunk is compared by vector instructions.
    let is_plain = |chunk: &&[u8; 32]| !chunk.iter().fold(false, |any, it| any | is_special(it));
    let (chunks, _) = json.as_chunks::<32>();
    let plain = 32 * chunks.iter().take_while(is_plain).count();
    let place = json[plain..].iter().position(is_special)?;
    Some(plain + place)
}

/// The effect of a `null` in the second object on a key of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Null {
    /// Removes it (RFC 7396).
    Removes,
    /// Is a value like any other.
    Replaces,
}

/// Merges `change` into `base`: objects are merged, all other values replaced. Keys keep their
/// order, new ones follow. A `base` that is not an object counts as an empty one; such a `change`
/// replaces everything.
///
/// Both are valid JSON no deeper than [`DEPTH_MAX`].
pub fn merge(base: &str, change: &str, null: Null) -> String {
    let Some(changes) = fields(change) else {
        return change.trim().to_owned();
    };
    let mut merged: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
    for (key, value) in fields(base).unwrap_or_default() {
        set(&mut merged, key, Cow::Borrowed(value.get()));
    }
    for (key, value) in changes {
        if value.get() == "null" && null == Null::Removes {
            merged.retain(|(known, _)| *known != key);
            continue;
        }
        let before = merged.iter().find(|(known, _)| *known == key);
        let before = before.map_or("{}", |(_, value)| value);
        let value = merge(before, value.get(), null);
        set(&mut merged, key, Cow::Owned(value));
    }
    write_object(merged.iter().map(|(key, value)| (key, value)))
}

fn set<'a>(fields: &mut Vec<(Cow<'a, str>, Cow<'a, str>)>, key: Cow<'a, str>, value: Cow<'a, str>) {
    match fields.iter_mut().find(|(known, _)| *known == key) {
        Some(field) => field.1 = value,
        None => fields.push((key, value)),
    }
}

/// Replaces each value of an object by the result of `map` for its key and JSON. Another value than
/// an object stays as it is.
pub fn map_fields(object: &str, map: impl Fn(&str, &str) -> String) -> String {
    let Some(fields) = fields(object) else {
        return object.to_owned();
    };
    let mapped = fields
        .iter()
        .map(|(key, value)| (key, map(key, value.get())));
    write_object(mapped)
}

/// Returns an object with only the fields of these names, in the original order.
pub fn picked(object: &str, names: &[&str]) -> String {
    let fields = fields(object).unwrap_or_default();
    let mut picked: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
    for (key, value) in fields {
        let is_absent = key == "providerMetadata" && value.get() == "null";
        if names.contains(&&*key) && !is_absent {
            set(&mut picked, key, Cow::Borrowed(value.get()));
        }
    }
    write_object(picked.iter().map(|(key, value)| (key, value)))
}

/// Returns the object with a field set, or removed.
pub fn with_field(object: &str, name: &str, value: Option<&str>) -> String {
    let mut changed: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
    for (key, value) in fields(object).unwrap_or_default() {
        set(&mut changed, key, Cow::Borrowed(value.get()));
    }
    match value {
        Some(value) => set(&mut changed, Cow::Borrowed(name), Cow::Borrowed(value)),
        None => changed.retain(|(key, _)| key != name),
    }
    write_object(changed.iter().map(|(key, value)| (key, value)))
}

/// Returns whether an object has a field of this name.
pub fn has_field(object: &str, name: &str) -> bool {
    fields(object).is_some_and(|fields| fields.iter().any(|(key, _)| key == name))
}

fn write_object<K: AsRef<str>, V: AsRef<str>>(fields: impl Iterator<Item = (K, V)>) -> String {
    let mut text = String::from("{");
    for (key, value) in fields {
        if text.len() > 1 {
            text.push(',');
        }
        push_string(&mut text, key.as_ref());
        text.push(':');
        text.push_str(value.as_ref());
    }
    text.push('}');
    text
}

/// Appends `value` as a JSON string.
pub fn push_string(text: &mut String, value: &str) {
    match serde_json::to_string(value) {
        Ok(quoted) => text.push_str(&quoted),
        Err(_) => unreachable!("a string cannot fail to be written as JSON"),
    }
}

/// Returns a JSON string without its quotes, as it is written; `None` for any other value.
pub fn string_body(value: &RawValue) -> Option<&str> {
    value.get().strip_prefix('"')?.strip_suffix('"')
}

/// Returns the fields of an object, in their order; `None` for any other value.
fn fields(json: &str) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    let Fields(fields) = serde_json::from_str(json).ok()?;
    Some(fields)
}

struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some((Text(key), value)) = map.next_entry()? {
                    fields.push((key, value));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

/// A text that is borrowed if it has no escapes.
#[derive(Debug, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn depth_ignores_brackets_within_strings() {
        for (text, expected) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a":[{}]}"#, 3),
            (r#"["[[[\"[[", {"}]]": 1}]"#, 2),
        ] {
            assert_eq!(depth(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn merging_keeps_bytes_order_and_numbers() {
        let check = |base, change, null, expected| {
            assert_eq!(merge(base, change, null), expected, "{base} with {change}");
        };
        check("{}", "{}", Null::Removes, "{}");
        check(
            r#"{"big":123456789012345678901234567890,"z":1.0e2}"#,
            r#"{"a":1.50}"#,
            Null::Removes,
            r#"{"big":123456789012345678901234567890,"z":1.0e2,"a":1.50}"#,
        );
        check(
            r#"{"a":{"b":1,"c":2},"d":[1]}"#,
            r#"{"a":{"b":null,"x":{"y":null,"z":3}},"d":[2]}"#,
            Null::Removes,
            r#"{"a":{"c":2,"x":{"z":3}},"d":[2]}"#,
        );
        check(
            r#"{"a":1}"#,
            r#"{"a":null}"#,
            Null::Replaces,
            r#"{"a":null}"#,
        );
        check(r#"{"a":1}"#, " [1] ", Null::Removes, "[1]");
        check("7", r#"{"a":1}"#, Null::Removes, r#"{"a":1}"#);
    }

    /// RFC 7396's own description, on trees.
    fn patched(target: Value, patch: &Value) -> Value {
        let Value::Object(changes) = patch else {
            return patch.clone();
        };
        let mut fields = match target {
            Value::Object(fields) => fields,
            _ => serde_json::Map::new(),
        };
        for (key, value) in changes {
            match value {
                Value::Null => drop(fields.remove(key)),
                value => {
                    let before = fields.remove(key).unwrap_or(Value::Null);
                    fields.insert(key.clone(), patched(before, value));
                }
            }
        }
        Value::Object(fields)
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[a\\\"é]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[abc\"]{1,2}", inner, 0..4)
                    .prop_map(|fields| json!(fields)),
            ]
        })
    }

    fn deepest(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(deepest).max().unwrap_or(0),
            Value::Object(fields) => 1 + fields.values().map(deepest).max().unwrap_or(0),
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn merging_bytes_is_merging_trees(target in tree(), patch in tree()) {
            let merged = merge(&target.to_string(), &patch.to_string(), Null::Removes);
            let merged: Value = serde_json::from_str(&merged).unwrap();
            prop_assert_eq!(merged, patched(target, &patch));
        }

        #[test]
        fn depth_is_the_depth_of_the_tree(tree in tree()) {
            prop_assert_eq!(depth(tree.to_string().as_bytes()), deepest(&tree));
        }
    }
}
