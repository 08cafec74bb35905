//! Names: `org/namespace/agent[/instance]`, the only kind of name.
//!
//! A name is validated once, when it is created. A bare `agent` stands for `default/default/agent`,
//! so that a small setup needs no hierarchy.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// The first part of names that are reserved for the node itself.
pub const SYSTEM_ORG: &str = "telpher";

/// Bytes per part of a name at most.
pub const PART_LENGTH_MAX: usize = 128;

/// An agent's name: three parts, or four with an instance.
///
/// Cheap to clone. Ordered and hashed by its text.
#[derive(Clone)]
pub struct Name {
    text: Arc<str>,
    /// Length of `org/namespace/agent`, without the instance.
    base_length: u16,
}

/// Reasons to reject a text as a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The number of parts is not 1, 3 or 4.
    #[error(
        "name `{text}` has {parts} parts: write agent, org/namespace/agent or org/namespace/agent/instance"
    )]
    Parts {
        /// The rejected text, shortened.
        text: String,
        /// Number of parts.
        parts: usize,
    },
    /// The text, or a part of it, is empty.
    #[error("name `{text}` has an empty part")]
    Empty {
        /// The rejected text, shortened.
        text: String,
    },
    /// A part is longer than [`PART_LENGTH_MAX`].
    #[error("a part of the name has {length} bytes (limit {PART_LENGTH_MAX})")]
    Long {
        /// Length of the part in bytes.
        length: usize,
    },
    /// A character is outside `[A-Za-z0-9._:-]`.
    #[error("name `{text}` contains {found:?}: only letters, digits and . _ : - are allowed")]
    Character {
        /// The rejected text, shortened.
        text: String,
        /// The first invalid character.
        found: char,
    },
}

impl Name {
    /// Parses and validates `text`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let parts = text.split('/').count();
        for part in text.split('/') {
            check_part(text, part)?;
        }
        match parts {
            1 => {
                let text = format!("default/default/{text}");
                Ok(Self::from_valid(&text, text.len()))
            }
            3 => Ok(Self::from_valid(text, text.len())),
            4 => {
                let base_length = text.rfind('/').unwrap_or(text.len());
                Ok(Self::from_valid(text, base_length))
            }
            parts => Err(NameError::Parts {
                text: shorten(text),
                parts,
            }),
        }
    }

    /// Returns the name of an instance of this agent.
    pub fn with_instance(&self, instance: &str) -> Result<Self, NameError> {
        check_part(instance, instance)?;
        let base = self.base();
        Ok(Self::from_valid(&format!("{base}/{instance}"), base.len()))
    }

    /// Returns the whole text, `org/namespace/agent[/instance]`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns `org/namespace/agent`.
    pub fn base(&self) -> &str {
        &self.text[..usize::from(self.base_length)]
    }

    /// Returns the instance, if the name has one.
    pub fn instance(&self) -> Option<&str> {
        self.text.get(usize::from(self.base_length) + 1..)
    }

    /// Returns the first part.
    pub fn org(&self) -> &str {
        self.part(0)
    }

    /// Returns the second part.
    pub fn namespace(&self) -> &str {
        self.part(1)
    }

    /// Returns the third part.
    pub fn agent(&self) -> &str {
        self.part(2)
    }

    fn part(&self, index: usize) -> &str {
        self.text.split('/').nth(index).unwrap_or_default()
    }

    fn from_valid(text: &str, base_length: usize) -> Self {
        Self {
            text: text.into(),
            base_length: base_length as u16,
        }
    }
}

fn check_part(text: &str, part: &str) -> Result<(), NameError> {
    if part.is_empty() {
        return Err(NameError::Empty {
            text: shorten(text),
        });
    }
    if part.len() > PART_LENGTH_MAX {
        return Err(NameError::Long { length: part.len() });
    }
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
    match part.chars().find(|c| !valid(*c)) {
        Some(found) => Err(NameError::Character {
            text: shorten(text),
            found,
        }),
        None => Ok(()),
    }
}

/// Shortens a text of a client for an error.
fn shorten(text: &str) -> String {
    text.chars().take(PART_LENGTH_MAX).collect()
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({})", self.text)
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_gives_its_parts() {
        let name = Name::parse("acme/search/crawler/i-7").unwrap();
        assert_eq!(
            (name.org(), name.namespace(), name.agent()),
            ("acme", "search", "crawler")
        );
        assert_eq!(
            (name.base(), name.instance()),
            ("acme/search/crawler", Some("i-7"))
        );
        assert_eq!(
            Name::parse("echo").unwrap().as_str(),
            "default/default/echo"
        );
        assert_eq!(Name::parse("a/b/c").unwrap().instance(), None);
    }

    #[test]
    fn invalid_name_is_refused_with_its_reason() {
        let long = "x".repeat(PART_LENGTH_MAX + 1);
        assert!(matches!(Name::parse(""), Err(NameError::Empty { .. })));
        assert!(matches!(Name::parse("a//c"), Err(NameError::Empty { .. })));
        assert!(matches!(
            Name::parse("a/b"),
            Err(NameError::Parts { parts: 2, .. })
        ));
        assert!(matches!(
            Name::parse("a/b/c/d/e"),
            Err(NameError::Parts { parts: 5, .. })
        ));
        assert!(matches!(
            Name::parse(&long),
            Err(NameError::Long { length: 129 })
        ));
        assert!(matches!(
            Name::parse("a/b c/d"),
            Err(NameError::Character { found: ' ', .. })
        ));
        assert!(matches!(
            Name::parse("ä"),
            Err(NameError::Character { found: 'ä', .. })
        ));
    }

    proptest! {
        #[test]
        fn valid_name_parses_its_own_display(text in "[A-Za-z0-9._:-]{1,20}(/[A-Za-z0-9._:-]{1,20}){2,3}") {
            let name = Name::parse(&text).unwrap();
            prop_assert_eq!(name.as_str(), text.as_str());
            prop_assert_eq!(Name::parse(&name.to_string()), Ok(name));
        }

        #[test]
        fn parsing_any_text_does_not_panic(text in "\\PC{0,300}") {
            if let Ok(name) = Name::parse(&text) {
                prop_assert!(name.as_str().ends_with(&text));
            }
        }
    }
}
