//! A name that outlives the message it stood in.

use std::fmt;
use std::sync::Arc;

use crate::name::{EncodedName, Key, Name};

/// A name of an application, or of one instance of it. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct FullName {
    encoded: EncodedName,
    texts: Option<Arc<[String; 3]>>,
}

impl FullName {
    /// The name of an application, or of its instance.
    pub fn new(texts: [&str; 3], id: Option<u128>) -> Self {
        Self::from(&Name::new(texts, id))
    }

    /// What messages to it are routed by.
    pub fn key(&self) -> Key {
        self.encoded.key()
    }

    /// As it stands in a message.
    pub fn name(&self) -> Name<'_> {
        let texts = self.texts.as_deref();
        Name {
            encoded: self.encoded,
            texts: texts.map(|texts| texts.each_ref().map(String::as_str)),
        }
    }
}

impl From<&Name<'_>> for FullName {
    fn from(name: &Name<'_>) -> Self {
        Self {
            encoded: name.encoded,
            texts: name.texts.map(|texts| Arc::new(texts.map(str::to_owned))),
        }
    }
}

impl fmt::Display for FullName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

impl fmt::Debug for FullName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
