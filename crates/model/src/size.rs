//! Sizes in bytes, written as `8MiB`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a size: write bytes or a number with KiB, MiB, GiB, kB, MB or GB")]
pub struct ByteSizeError {
    /// The rejected text.
    pub text: String,
}

const UNITS: [(&str, u64); 8] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

impl ByteSize {
    /// Returns a size of `count` bytes.
    pub const fn bytes(count: u64) -> Self {
        Self(count)
    }

    /// Returns a size of `count` times 1,024 bytes.
    pub const fn kibibytes(count: u64) -> Self {
        Self(count << 10)
    }

    /// Returns a size of `count` times 1,048,576 bytes.
    pub const fn mebibytes(count: u64) -> Self {
        Self(count << 20)
    }

    /// Returns a size of `count` times 1,073,741,824 bytes.
    pub const fn gibibytes(count: u64) -> Self {
        Self(count << 30)
    }

    /// Returns the number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the number of bytes, capped to the address space.
    pub const fn as_usize(self) -> usize {
        if self.0 > usize::MAX as u64 {
            usize::MAX
        } else {
            self.0 as usize
        }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0B"),
            n if n.is_multiple_of(1 << 30) => write!(f, "{}GiB", n >> 30),
            n if n.is_multiple_of(1 << 20) => write!(f, "{}MiB", n >> 20),
            n if n.is_multiple_of(1 << 10) => write!(f, "{}KiB", n >> 10),
            n => write!(f, "{n}B"),
        }
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let error = || ByteSizeError {
            text: text.to_owned(),
        };
        let trimmed = text.trim();
        let (digits, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((trimmed.strip_suffix(unit)?, *factor)))
            .unwrap_or((trimmed, 1));
        let count: u64 = digits.trim_end().parse().map_err(|_| error())?;
        count.checked_mul(factor).map(Self).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_parses_its_own_display() {
        for size in [0, 1, 1023, 1024, 8 << 20, 3 << 30, 1_000_001] {
            let size = ByteSize::bytes(size);
            assert_eq!(size.to_string().parse(), Ok(size));
        }
    }

    #[test]
    fn invalid_and_too_large_sizes_are_refused() {
        for text in [
            "",
            "MiB",
            "-1",
            "1.5MiB",
            "18446744073709551615GiB",
            "8 parsecs",
        ] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }
}
