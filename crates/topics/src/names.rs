//! Names of topics, by Kafka's rules.

/// The most characters of a name.
pub const NAME_LENGTH_MAX: usize = 249;

/// The reason why a topic name is invalid: INVALID_TOPIC_EXCEPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// The name is empty.
    #[error("the topic name is empty")]
    Empty,
    /// `.` and `..` are directories, and Kafka stores topics in directories.
    #[error("a topic name cannot be `.` or `..`")]
    Dots,
    /// The name has more than [`NAME_LENGTH_MAX`] characters.
    #[error("the topic name has {length} characters (limit {NAME_LENGTH_MAX})")]
    Long {
        /// Its length.
        length: usize,
    },
    /// The name has a character outside `[A-Za-z0-9._-]`.
    #[error("invalid character {found:?} in the topic name: allowed are letters, digits and . _ -")]
    Character {
        /// The first character that is not allowed.
        found: char,
    },
}

/// Checks the name of a topic.
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

/// Returns the key that two topics may not have in common. Metric names replace `.` by `_`, so
/// `a.b` and `a_b` would be one name.
pub(crate) fn collision_key(name: &str) -> String {
    name.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_names_follow_the_rules_of_kafka() {
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
