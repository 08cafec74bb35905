//! Access to single records of topics, for listeners that do not use Kafka's record batches.
//!
//! Topics store and return batches as their producers made them. This module
//! builds batches from records (`appending`) and takes them apart (`reading`), using the public
//! interface of topics.
//!
//! This module does not know how listeners encode records.

mod appending;
mod reading;
mod unpacked;

pub use appending::{Appending, Bad, BadRecords, NewRecord, RecordResult};
pub use reading::{NotRead, Reader, Wanted};
pub(crate) use unpacked::Unpacked;
