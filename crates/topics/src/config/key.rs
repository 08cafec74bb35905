//! What the keys are, and which values they take.

use super::BadConfig;

/// What can be configured. The numbers stand on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Key {
    /// `cleanup.policy`
    CleanupPolicy = 1,
    /// `compression.type`
    CompressionType = 2,
    /// `delete.retention.ms`
    DeleteRetentionMs = 3,
    /// `max.message.bytes`
    MaxMessageBytes = 4,
    /// `message.timestamp.type`
    MessageTimestampType = 5,
    /// `retention.bytes`
    RetentionBytes = 6,
    /// `retention.ms`
    RetentionMs = 7,
    /// `segment.bytes`
    SegmentBytes = 8,
    /// `telpher.durability`
    Durability = 9,
}

/// What a value is, as DescribeConfigs says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of some words.
    Word,
    /// A number of 32 bits.
    Int,
    /// A number of 64 bits.
    Long,
    /// Words with commas between.
    List,
}

impl Key {
    /// All keys, by name.
    pub const ALL: [Self; 9] = [
        Self::CleanupPolicy,
        Self::CompressionType,
        Self::DeleteRetentionMs,
        Self::MaxMessageBytes,
        Self::MessageTimestampType,
        Self::RetentionBytes,
        Self::RetentionMs,
        Self::SegmentBytes,
        Self::Durability,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::CleanupPolicy => "cleanup.policy",
            Self::CompressionType => "compression.type",
            Self::DeleteRetentionMs => "delete.retention.ms",
            Self::MaxMessageBytes => "max.message.bytes",
            Self::MessageTimestampType => "message.timestamp.type",
            Self::RetentionBytes => "retention.bytes",
            Self::RetentionMs => "retention.ms",
            Self::SegmentBytes => "segment.bytes",
            Self::Durability => "telpher.durability",
        }
    }

    /// The key of that name.
    pub fn parse(name: &str) -> Result<Self, BadConfig> {
        let key = Self::ALL.into_iter().find(|it| it.name() == name);
        key.ok_or_else(|| BadConfig::Key {
            key: name.chars().take(100).collect(),
        })
    }

    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == number)
    }

    /// What it is unless it is set.
    pub fn default(self) -> &'static str {
        match self {
            Self::CleanupPolicy => "delete",
            Self::CompressionType => "producer",
            Self::DeleteRetentionMs => "86400000",
            Self::MaxMessageBytes => "1048588",
            Self::MessageTimestampType => "CreateTime",
            Self::RetentionBytes => "-1",
            Self::RetentionMs => "604800000",
            Self::SegmentBytes => "1073741824",
            Self::Durability => "disk",
        }
    }

    /// What its values are.
    pub fn kind(self) -> Kind {
        match self {
            Self::CleanupPolicy => Kind::List,
            Self::CompressionType | Self::MessageTimestampType | Self::Durability => Kind::Word,
            Self::DeleteRetentionMs | Self::RetentionBytes | Self::RetentionMs => Kind::Long,
            Self::MaxMessageBytes | Self::SegmentBytes => Kind::Int,
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::CleanupPolicy => &["delete", "compact"],
            Self::CompressionType => &["producer"],
            Self::MessageTimestampType => &["CreateTime", "LogAppendTime"],
            Self::Durability => &["disk", "memory"],
            _ => &[],
        }
    }

    /// The lowest and the highest number.
    fn range(self) -> (i64, i64) {
        match self {
            Self::RetentionBytes | Self::RetentionMs => (-1, i64::MAX),
            Self::DeleteRetentionMs => (0, i64::MAX),
            // Below that Kafka's own segments do not hold a batch's header.
            Self::SegmentBytes => (14, i64::from(i32::MAX)),
            _ => (0, i64::from(i32::MAX)),
        }
    }

    pub(super) fn expects(self) -> String {
        match self.kind() {
            Kind::Word => format!("it is {}", self.words().join(" or ")),
            Kind::List => format!("it is made of {}", self.words().join(", ")),
            Kind::Int | Kind::Long => {
                let (lowest, highest) = self.range();
                format!("it is a number from {lowest} to {highest}")
            }
        }
    }

    pub(super) fn check(self, value: &str) -> Result<(), BadConfig> {
        let is_right = match self.kind() {
            Kind::Word => self.words().contains(&value),
            Kind::List => {
                let is_word = |it| self.words().contains(&it);
                items(value).next().is_some() && items(value).all(is_word)
            }
            Kind::Int | Kind::Long => {
                let (lowest, highest) = self.range();
                let number = value.trim().parse::<i64>();
                number.is_ok_and(|number| (lowest..=highest).contains(&number))
            }
        };
        if is_right {
            return Ok(());
        }
        Err(BadConfig::Value {
            key: self,
            value: value.chars().take(100).collect(),
        })
    }
}

/// The words of a list.
pub(super) fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|it| !it.is_empty())
}

/// All keys, for an error.
pub(super) fn names() -> String {
    Key::ALL.map(Key::name).join(", ")
}
