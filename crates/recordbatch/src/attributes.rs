//! The attributes of a batch: compression, timestamp type and flags.

const COMPRESSION: i16 = 0b111;
const APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;
const RESERVED: i16 = !0x7f;

/// The codec of the records of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum Compression {
    /// Not compressed.
    #[default]
    None = 0,
    /// gzip, RFC 1952.
    Gzip = 1,
    /// snappy: a raw block, or several in the framing of xerial's snappy-java.
    Snappy = 2,
    /// LZ4's frame format.
    Lz4 = 3,
    /// zstd, RFC 8878.
    Zstd = 4,
}

impl Compression {
    /// All codecs, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// Returns the name that configurations use.
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

/// The source of the timestamps of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampType {
    /// CreateTime: the producer's, one timestamp for each record.
    #[default]
    Create,
    /// LogAppendTime: the broker's, one for all records, which is the maximum.
    Append,
}

/// The attributes of a batch. Unknown bits are kept as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes(pub i16);

impl Attributes {
    /// Returns the attributes of a batch with this compression.
    pub fn of(compression: Compression) -> Self {
        Self(compression as i16)
    }

    /// Returns the compression; `None` if its number is unknown.
    pub fn compression(self) -> Option<Compression> {
        let number = self.0 & COMPRESSION;
        let mut all = Compression::ALL.into_iter();
        all.find(|it| *it as i16 == number)
    }

    /// Returns the source of the timestamps.
    pub fn timestamp_type(self) -> TimestampType {
        match self.0 & APPEND_TIME {
            0 => TimestampType::Create,
            _ => TimestampType::Append,
        }
    }

    /// Returns whether the batch belongs to a transaction.
    pub fn is_transactional(self) -> bool {
        self.0 & TRANSACTIONAL != 0
    }

    /// Returns whether this is a control batch: it contains a marker and no records for consumers.
    pub fn is_control(self) -> bool {
        self.0 & CONTROL != 0
    }

    /// Returns whether the base timestamp is the time until which deletions stay (KIP-534).
    pub fn has_delete_horizon(self) -> bool {
        self.0 & DELETE_HORIZON != 0
    }

    /// Returns whether an unknown bit is set.
    pub fn has_reserved(self) -> bool {
        self.0 & RESERVED != 0
    }

    /// Returns the attributes with this compression.
    pub fn with_compression(self, compression: Compression) -> Self {
        Self(self.0 & !COMPRESSION | compression as i16)
    }

    /// Returns the attributes with this type of timestamps.
    pub fn with_timestamp_type(self, timestamps: TimestampType) -> Self {
        match timestamps {
            TimestampType::Create => Self(self.0 & !APPEND_TIME),
            TimestampType::Append => Self(self.0 | APPEND_TIME),
        }
    }

    /// Returns the attributes of a batch in a transaction.
    pub fn transactional(self) -> Self {
        Self(self.0 | TRANSACTIONAL)
    }

    /// Returns the attributes of a control batch.
    pub fn control(self) -> Self {
        Self(self.0 | CONTROL)
    }

    /// Returns the attributes of a batch whose base timestamp is a delete horizon.
    pub fn with_delete_horizon(self) -> Self {
        Self(self.0 | DELETE_HORIZON)
    }
}
