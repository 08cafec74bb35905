//! Names of topics, as Kafka has them.

/// Characters of a name, at most.
pub const NAME_LENGTH_MAX: usize = 249;

/// Why a text is no name of a topic: INVALID_TOPIC_EXCEPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Nothing.
    #[error("the name of a topic is not empty")]
    Empty,
    /// A directory, where topics are directories.
    #[error("a topic is not called `.` or `..`")]
    Dots,
    /// More than [`NAME_LENGTH_MAX`].
    #[error("the name of a topic has at most {NAME_LENGTH_MAX} characters, this one has {length}")]
    Long {
        /// Its length.
        length: usize,
    },
    /// Outside `[A-Za-z0-9._-]`.
    #[error("the name of a topic holds letters, digits and . _ -, not {found:?}")]
    Character {
        /// The first that is not allowed.
        found: char,
    },
}

/// Whether a topic may have that name.
pub fn check_name(name: &str) -> Result<(), BadName> {
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-');
    let found = name.chars().find(|it| !is_allowed(*it));
    match (name, found) {
        ("", _) => Err(BadName::Empty),
        ("." | "..", _) => Err(BadName::Dots),
        (_, Some(found)) => Err(BadName::Character { found }),
        _ if name.len() > NAME_LENGTH_MAX => Err(BadName::Long { length: name.len() }),
        _ => Ok(()),
    }
}

/// What two topics may not have in common: names of metrics make `_` of `.`, so that `a.b` and `a_b`
/// would be one.
pub(crate) fn collision_key(name: &str) -> String {
    name.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_kafka_lets_be_one() {
        for name in [
            "a",
            "A.b_c-9",
            "...",
            "__consumer_offsets",
            &"x".repeat(249),
        ] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let long = "x".repeat(250);
        for (name, expected) in [
            ("", BadName::Empty),
            (".", BadName::Dots),
            ("..", BadName::Dots),
            ("a b", BadName::Character { found: ' ' }),
            ("ä", BadName::Character { found: 'ä' }),
            (&long, BadName::Long { length: 250 }),
        ] {
            assert_eq!(check_name(name), Err(expected), "{name}");
        }
    }
}
