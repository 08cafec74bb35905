//! The bits of a batch that say what it is.

const COMPRESSION: i16 = 0b111;
const APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;
const RESERVED: i16 = !0x7f;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum Compression {
    /// Not at all.
    #[default]
    None = 0,
    /// RFC 1952.
    Gzip = 1,
    /// One raw snappy block, or several in the framing of xerial's snappy-java.
    Snappy = 2,
    /// LZ4's frame format.
    Lz4 = 3,
    /// RFC 8878.
    Zstd = 4,
}

impl Compression {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// As configurations call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// Whose time the timestamps of a batch are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's, a timestamp for each record.
    #[default]
    Create,
    /// The broker's, one for all records: the maximum.
    Append,
}

/// The attributes of a batch. Bits that mean nothing are kept as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes(pub i16);

impl Attributes {
    /// Of records that are compressed in that way.
    pub fn of(compression: Compression) -> Self {
        Self(compression as i16)
    }

    /// `None` for a number that names no compression.
    pub fn compression(self) -> Option<Compression> {
        let number = self.0 & COMPRESSION;
        let mut all = Compression::ALL.into_iter();
        all.find(|it| *it as i16 == number)
    }

    /// Whose time the timestamps are.
    pub fn timestamp_type(self) -> TimestampType {
        match self.0 & APPEND_TIME {
            0 => TimestampType::Create,
            _ => TimestampType::Append,
        }
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(self) -> bool {
        self.0 & TRANSACTIONAL != 0
    }

    /// Whether the batch holds a marker and nothing for a consumer.
    pub fn is_control(self) -> bool {
        self.0 & CONTROL != 0
    }

    /// Whether the base timestamp says until when deletions are kept (KIP-534).
    pub fn has_delete_horizon(self) -> bool {
        self.0 & DELETE_HORIZON != 0
    }

    /// Whether a bit is set that means nothing yet.
    pub fn has_reserved(self) -> bool {
        self.0 & RESERVED != 0
    }

    /// The same with records compressed in that way.
    pub fn with_compression(self, compression: Compression) -> Self {
        Self(self.0 & !COMPRESSION | compression as i16)
    }

    /// The same with that type of timestamps.
    pub fn with_timestamp_type(self, timestamps: TimestampType) -> Self {
        match timestamps {
            TimestampType::Create => Self(self.0 & !APPEND_TIME),
            TimestampType::Append => Self(self.0 | APPEND_TIME),
        }
    }

    /// The same as a part of a transaction.
    pub fn transactional(self) -> Self {
        Self(self.0 | TRANSACTIONAL)
    }

    /// The same as a marker.
    pub fn control(self) -> Self {
        Self(self.0 | CONTROL)
    }

    /// The same with a base timestamp that is a delete horizon.
    pub fn with_delete_horizon(self) -> Self {
        Self(self.0 | DELETE_HORIZON)
    }
}
