//! The values that a configuration key accepts.

use std::fmt;

/// The type of a value, as DescribeConfigs reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A word from a list.
    Word,
    /// A number of 32 bits.
    Int,
    /// A number of 64 bits.
    Long,
    /// A number with a fraction.
    Double,
    /// Words separated by commas.
    List,
}

/// The values that a key accepts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values {
    Flag,
    Word(&'static [&'static str]),
    /// 32 bits: the lowest and the highest number, and possibly one number outside of that range.
    Int {
        range: (i64, i64),
        or: Option<i64>,
    },
    /// 64 bits: the lowest and the highest number.
    Long(i64, i64),
    /// From 0 to 1.
    Ratio,
    /// A list of one or more of these words.
    List(&'static [&'static str]),
    /// `*`, or pairs of a partition and a broker (`0:1,1:1`); or nothing.
    Replicas,
}

impl Values {
    pub(super) fn kind(self) -> Kind {
        match self {
            // DescribeConfigs reports a flag that cannot be set as a flag too.
            Self::Flag | Self::Word(["false"]) => Kind::Flag,
            Self::Word(_) => Kind::Word,
            Self::Int { .. } => Kind::Int,
            Self::Long(..) => Kind::Long,
            Self::Ratio => Kind::Double,
            Self::List(_) | Self::Replicas => Kind::List,
        }
    }

    /// Returns whether `value` is accepted.
    pub(super) fn has(self, value: &str) -> bool {
        let value = value.trim_matches(|it| self.is_trimmed() && char::is_whitespace(it));
        let number = || value.parse::<i64>().ok();
        match self {
            Self::Flag => flag(value).is_some(),
            Self::Word(words) => words.contains(&value),
            Self::Int { range, or } => {
                number().is_some_and(|it| (range.0..=range.1).contains(&it) || or == Some(it))
            }
            Self::Long(lowest, highest) => {
                number().is_some_and(|it| (lowest..=highest).contains(&it))
            }
            Self::Ratio => ratio(value).is_some(),
            Self::List(words) => {
                items(value).next().is_some() && items(value).all(|it| words.contains(&it))
            }
            Self::Replicas => value == "*" || items(value).all(|it| is_replica(it).is_some()),
        }
    }

    /// Returns whether spaces around the value are ignored, as Kafka's parser does for numbers and
    /// flags.
    fn is_trimmed(self) -> bool {
        matches!(
            self,
            Self::Flag | Self::Int { .. } | Self::Long(..) | Self::Ratio
        )
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("expected true or false"),
            Self::Word(words) => write!(f, "expected {}", words.join(" or ")),
            Self::Int { range, or } => {
                write!(f, "expected a number from {} to {}", range.0, range.1)?;
                or.map_or(Ok(()), |or| write!(f, ", or {or}"))
            }
            Self::Long(lowest, highest) => {
                write!(f, "expected a number from {lowest} to {highest}")
            }
            Self::Ratio => f.write_str("expected a number from 0 to 1"),
            Self::List(words) => write!(f, "expected a list of {}", words.join(", ")),
            Self::Replicas => f.write_str("expected * or a list of partition:broker"),
        }
    }
}

/// Parses a flag as Kafka does, ignoring case.
pub(super) fn flag(value: &str) -> Option<bool> {
    match value {
        _ if value.eq_ignore_ascii_case("true") => Some(true),
        _ if value.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Parses a number from 0 to 1.
pub(super) fn ratio(value: &str) -> Option<f64> {
    let number = value.trim().parse::<f64>().ok();
    number.filter(|it| (0.0..=1.0).contains(it))
}

/// Parses `partition:broker`.
fn is_replica(item: &str) -> Option<(u32, u32)> {
    let (partition, broker) = item.split_once(':')?;
    Some((partition.parse().ok()?, broker.parse().ok()?))
}

/// Returns the words of a list.
pub(super) fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|it| !it.is_empty())
}
