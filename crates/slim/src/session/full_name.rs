//! `FullName`: an owned name.

use std::fmt;
use std::sync::Arc;

use crate::name::{EncodedName, Key, Name};

/// Name of an application or of one instance. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct FullName {
    encoded: EncodedName,
    texts: Option<Arc<[String; 3]>>,
}

impl FullName {
    /// Creates the name of an application or of an instance.
    pub fn new(texts: [&str; 3], id: Option<u128>) -> Self {
        Self::from(&Name::new(texts, id))
    }

    /// Returns the routing key.
    pub fn key(&self) -> Key {
        self.encoded.key()
    }

    /// Returns the name as used in messages.
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
