//! Records of topics one by one, for whoever does not speak in record batches.
//!
//! Topics keep and hand out batches as their producers made them ([`crate::topics`]). Here they are made
//! of records (`appending`) and taken apart again (`reading`), through what topics offer to anybody.
//!
//! It does not know how a record is written down at a door.

mod appending;
mod reading;
mod route;
mod unpacked;

pub use appending::{Appending, Bad, BadRecords, NewRecord, NotAppended, Told};
pub use reading::{NotRead, Reader, Wanted};
pub use recordbatch::{Headers, Record};
pub use route::TopicRoute;
pub(crate) use unpacked::Unpacked;
