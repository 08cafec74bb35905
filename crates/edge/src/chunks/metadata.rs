//! Metadata of a message that is being put together: merged as the AI SDK merges them.

use std::fmt::Write as _;

use serde_json::value::RawValue;

use crate::json;

/// Any JSON value, or none.
#[derive(Debug, Default)]
pub(super) struct MessageMetadata(Option<String>);

impl MessageMetadata {
    /// These with `change`: the first value is taken as it is, later ones are merged into it
    /// (`mergeObjects` of `vercel/ai`).
    pub(super) fn merged(&self, change: &str) -> Self {
        Self(Some(match &self.0 {
            None => change.to_owned(),
            Some(base) => json::merge(&spread(base), &spread(change), json::Null::Replaces),
        }))
    }

    /// Bytes of the object that they are kept as.
    pub(super) fn size(&self) -> usize {
        self.object().len()
    }

    /// The object that they are kept as, with the text of an `error` chunk if that fits; empty if
    /// there are none.
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
            // Metadata of a message are an object.
            Some(value) => format!("{{\"value\":{value}}}"),
        }
    }
}

/// A value as an object, as JavaScript spreads it: the items of an array and the letters of a text
/// under their places, nothing of any other value.
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
        // A String takes everything that is written to it.
        let _ = write!(object, "{comma}\"{place}\":{item}");
    }
    object.push('}');
    object
}
