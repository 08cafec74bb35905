//! Vocabulary shared by all layers: names, error codes, units and limits.
//!
//! A term that two layers must agree on is defined and validated here, once. The crate has no async
//! code, no serialization and no I/O, so that every crate can depend on it.

pub mod duration;
mod error_code;
mod failure;
mod hash;
pub mod limits;
mod name;
mod nearest;
mod size;
pub mod wall_clock;

/// The method that `telpher ping` calls. No agent needs to implement it, since an error is an
/// answer, too.
pub const PING_METHOD: &str = "telpher.ping";

pub use error_code::{ErrorCode, Executed, Retry};
pub use failure::Failure;
pub use hash::{fnv1a_32, fnv1a_64};
pub use name::{Name, NameError, PART_LENGTH_MAX, SYSTEM_ORG};
pub use nearest::nearest;
pub use size::{ByteSize, ByteSizeError};
pub use wall_clock::WallClock;
