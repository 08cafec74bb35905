//! The vocabulary every layer shares: names, error codes, units and limits.
//!
//! A word that two layers must agree on is defined here once and validated here once. The crate
//! deliberately knows nothing of async code, serialization or I/O, so that anything may depend
//! on it.

mod error_code;
mod hash;
pub mod limits;
mod name;
mod nearest;
mod size;
pub mod wall_clock;

pub use error_code::{ErrorCode, Executed, Retry};
pub use hash::{fnv1a_32, fnv1a_64};
pub use name::{Name, NameError, PART_LENGTH_MAX};
pub use nearest::nearest;
pub use size::{ByteSize, ByteSizeError};
pub use wall_clock::WallClock;
