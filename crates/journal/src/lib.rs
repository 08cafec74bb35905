//! The journal: every ack means it is on disk.
//!
//! Every durable stream of a node appends to one *line*, a sequence of segment files, so that one
//! `fdatasync` covers everybody who waits. Records of one shard that were decided while the last
//! sync was under way form a *block*; the line orders blocks, writes them at once, syncs once and
//! publishes how far it is durable. Sealed segments are *filed* into *extents*, clustered by
//! stream, in the background.
//!
//! It knows what a record's stream and offset are and nothing of what is in it; it knows no
//! network, no async runtime and no clock: time is handed in, files are a [`disk::Disk`], and the
//! threads around its two cores, the line and the filing, are a loop that calls `step`.

mod background;
pub mod backup;
pub mod block;
mod buffer;
mod buffers;
pub mod disk;
mod doorbell;
mod durable;
pub mod extent;
mod figures;
mod filed;
pub mod filing;
mod follow;
mod guard;
mod health;
mod ids;
pub mod inspect;
mod journal;
mod line;
pub mod manifest;
mod many;
mod measured;
mod open;
mod options;
mod read;
pub mod record;
mod recovery;
pub mod reserve;
mod round;
pub mod segment;
mod shard;
mod shared;
pub mod spares;
mod stream;
mod sync;
mod tail;
#[cfg(test)]
mod tests;
mod threads;
mod zeros;

pub use background::Background;
pub use durable::{Status, Ticket};
pub use figures::FilingStats;
pub use follow::{Follow, Following};
pub use guard::{AppendError, Appended, Guard};
pub use health::{Health, HealthChanges};
pub use ids::{Index, Position, ShardId, StreamId};
pub use journal::{CutError, Journal, Stats, StreamState};
pub use line::{Line, LineStep};
pub use many::Wanted;
pub use measured::{MeasuredDisk, SyncCounts, SyncTimes};
pub use open::{OpenError, Stepped};
pub use options::{AcceptLoss, Commit, Options};
pub use read::{Read, ReadError, ReadLimit, Record};
pub use recovery::{DamageReport, DamagedRange, LineError, LostBlocks, LostRecords, Recovery};
pub use round::Round;
