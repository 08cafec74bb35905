//! The metadata of a message in assembly, merged as the AI SDK does.

use std::fmt::Write as _;

use serde_json::value::RawValue;

/// The metadata: any JSON value, or none.
#[derive(Debug, Default)]
pub(super) struct MessageMetadata(Option<String>);

impl MessageMetadata {
    /// Returns the metadata merged with `change`: the first value is taken as it is, later ones are
    /// merged into it (`mergeObjects` of `vercel/ai`).
    pub(super) fn merged(&self, change: &str) -> Self {
        Self(Some(match &self.0 {
            None => change.to_owned(),
            Some(base) => json::merge(&spread(base), &spread(change), json::Null::Replaces),
        }))
    }

    /// Returns the size of the stored object, in bytes.
    pub(super) fn size(&self) -> usize {
        self.object().len()
    }

    /// Returns the stored object, with the text of an `error` chunk if that fits; empty if there is
    /// no metadata.
    pub(super) fn with_error(&self, error: Option<&str>, size_max: usize) -> String {
        let object = self.object();
        let Some(error) = error else { return object };
        let mut said = String::from(r#"{"error":"#);
        json::push_string(&mut said, error);
        said.push('}');
        let metadata = match &*object {
            "" => said,
            object => json::merge(&said, object, json::Null::Replaces),
        };
        if metadata.len() <= size_max {
            metadata
        } else {
            object
        }
    }

    fn object(&self) -> String {
        match &self.0 {
            None => String::new(),
            Some(value) if value.starts_with('{') => value.clone(),
            // A message stores its metadata as an object.
            Some(value) => format!("{{\"value\":{value}}}"),
        }
    }
}

/// Returns a value as an object, as JavaScript spreads it: the items of an array or the letters of
/// a text by index, and nothing of any other value.
fn spread(value: &str) -> String {
    if value.starts_with('{') {
        return value.to_owned();
    }
    let mut items: Vec<String> = Vec::new();
    if let Ok(array) = serde_json::from_str::<Vec<&RawValue>>(value) {
        items.extend(array.iter().map(|item| item.get().to_owned()));
    } else if let Ok(text) = serde_json::from_str::<String>(value) {
        items.extend(text.chars().map(|letter| {
            let mut item = String::new();
            json::push_string(&mut item, letter.encode_utf8(&mut [0; 4]));
            item
        }));
    }
    let mut object = String::from("{");
    for (place, item) in items.iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(object, "{comma}\"{place}\":{item}");
    }
    object.push('}');
    object
}
