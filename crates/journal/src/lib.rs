//! The write-ahead log of a node: an acknowledged record is on disk.
//!
//! All durable streams of a node append to one *line*, a sequence of segment files, so that one
//! `fdatasync` covers all waiting writers. The records that a shard accepts during one sync form a
//! *block*. The line orders the blocks of all shards, writes them in one go, syncs once and
//! publishes how far it is durable. Sealed segments are *filed* in the background: their records
//! move into *extents*, clustered by stream.
//!
//! A shard is also a replicated log, whose entries are its blocks. With [`Commit::ByCaller`], the
//! caller runs a consensus: it begins a reign with [`Journal::begin_proposed_reign`], proposes the
//! blocks of [`Journal::take_closed`], hands over what was decided to [`Journal::append_decided`],
//! and reports what is committed to [`Journal::commit`]. A follower does the last two, and
//! [`Journal::cut`] where its log differs from the leader's. Both vote by [`Journal::save_vote`].
//!
//! The journal knows a record's stream and offset and nothing about its payload. It knows no
//! network, no async runtime and no clock: the caller passes the time, and files are a
//! [`disk::Disk`]. Its two cores, the line and the filing, are driven by calls to `step`; the
//! threads around them only loop over it.

mod background;
pub mod backup;
pub mod block;
mod buffer;
mod buffers;
mod cache_line;
mod checksum;
mod doorbell;
pub mod extent;
pub mod filing;
mod filing_port;
mod filing_stats;
mod followers;
mod guard;
mod health;
mod ids;
mod journal;
mod line;
mod log;
pub mod manifest;
mod open;
mod options;
mod outcomes;
mod proposals;
mod publication;
mod read;
mod read_many;
pub mod record;
mod recovery;
mod round;
pub mod segment;
mod shard;
mod shared;
mod stream;
mod sync;
mod syncer;
mod tail;
#[cfg(test)]
mod tests;
mod threads;
mod ticket;
mod votes;
mod voting;
mod wait_word;

pub use ::disk;
pub use ::disk::{MeasuredDisk, StoredBytes, SyncCounts, SyncTimes};
pub use background::Background;
pub use extent::{HEAD_SIZE, LocatedRecord, Reach};
pub use filing_stats::FilingStats;
pub use followers::{Follow, Following};
pub use guard::{AppendError, Appended, Guard};
pub use health::{Health, HealthChanges};
pub use ids::{Index, Position, Reign, ShardId, StreamId};
pub use journal::{CutError, Journal, Stats, StreamState};
pub use line::{Line, LineStep};
pub use log::{ReadBlocksError, StalledShard};
pub use open::{OpenError, SteppedJournal};
pub use options::{AcceptLoss, Commit, Options};
pub use outcomes::Outcomes;
pub use read::{Read, ReadError, ReadLimit, Record};
pub use read_many::Wanted;
pub use recovery::{DamageReport, DamagedRange, LineError, LostBlocks, LostRecords, Recovery};
pub use round::Round;
pub use shard::{DecidedBlock, DecidedError, MEMBERS_SIZE_MAX, MEMBERS_STREAM};
pub use ticket::{Stage, Status, Ticket};
pub use votes::{LastVote, VOTE_SIZE_MAX, Vote, VoteError};
pub use voting::VoteTicket;
