//! Patterns of names: `org/namespace/agent`, where each part is literal or `*`.

use std::fmt;
use std::str::FromStr;

use model::{Name, NameError};

use model::SYSTEM_ORG;

/// The part that stands for any value.
const ANY: &str = "*";

/// A set of names: three parts, each of them literal or `*`.
///
/// A bare `agent` means `default/default/agent`, as in names. No pattern contains a name of
/// `telpher/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// `None` is `*`.
    parts: [Option<Box<str>>; 3],
}

/// A text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The text has a number of parts other than one or three.
    #[error("pattern `{text}` has {count} parts: write agent or org/namespace/agent")]
    Parts {
        /// The text.
        text: String,
        /// Count of its parts.
        count: usize,
    },
    /// A literal part is not a part of a name.
    #[error("pattern `{text}`: {error}; a part is a name's part or `*`")]
    Part {
        /// The text.
        text: String,
        /// The error in the part.
        error: NameError,
    },
    /// The text names agents of the node itself.
    #[error("pattern `{text}`: names of `{SYSTEM_ORG}/` belong to the node itself")]
    System {
        /// The text.
        text: String,
    },
}

impl Pattern {
    /// Parses `org/namespace/agent` or `agent`, where each part may be `*`.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let parts: Vec<&str> = text.split('/').collect();
        let parts = match parts[..] {
            [agent] => ["default", "default", agent],
            [org, namespace, agent] => [org, namespace, agent],
            _ => {
                return Err(PatternError::Parts {
                    text: text.to_owned(),
                    count: parts.len(),
                });
            }
        };
        for part in parts.into_iter().filter(|part| *part != ANY) {
            Name::parse(part).map_err(|error| PatternError::Part {
                text: text.to_owned(),
                error,
            })?;
        }
        if parts[0] == SYSTEM_ORG {
            let text = text.to_owned();
            return Err(PatternError::System { text });
        }
        let parts = parts.map(|part| (part != ANY).then(|| part.into()));
        Ok(Self { parts })
    }

    /// The pattern that contains this name and no other.
    pub(super) fn exactly(name: &Name) -> Self {
        let parts = [name.org(), name.namespace(), name.agent()];
        let parts = parts.map(|part| Some(part.into()));
        Self { parts }
    }

    /// Returns whether the pattern contains `org/namespace/agent`.
    pub fn contains(&self, base: &str) -> bool {
        let mut parts = base.splitn(3, '/');
        let is_own = |own: &Option<Box<str>>| match (own, parts.next()) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(own), Some(part)) => **own == *part,
        };
        !is_system(base) && self.parts.iter().all(is_own)
    }

    /// The three parts; `None` is `*`.
    pub fn parts(&self) -> [Option<&str>; 3] {
        self.parts.each_ref().map(Option::as_deref)
    }

    /// Returns whether the pattern contains all names but those of the node itself.
    pub fn is_any(&self) -> bool {
        self.parts.iter().all(Option::is_none)
    }

    /// The name in this pattern of an agent called `agent`: `default` for an organization or a
    /// namespace that is open.
    pub(super) fn name_for(&self, agent: &str) -> Option<Name> {
        let [org, namespace, own] = &self.parts;
        let org = org.as_deref().unwrap_or("default");
        let namespace = namespace.as_deref().unwrap_or("default");
        let agent = own.as_deref().unwrap_or(agent);
        Name::parse(&format!("{org}/{namespace}/{agent}")).ok()
    }
}

/// Returns whether `org/namespace/agent` names an agent of the node itself.
pub(super) fn is_system(base: &str) -> bool {
    let org = base.split('/').next();
    org == Some(SYSTEM_ORG)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [org, namespace, agent] = &self.parts;
        let text = |part: &Option<Box<str>>| part.as_deref().unwrap_or(ANY).to_owned();
        write!(f, "{}/{}/{}", text(org), text(namespace), text(agent))
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::parse(text)
    }
}
