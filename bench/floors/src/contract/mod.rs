//! The contract every standalone benchmark program keeps, so that one driver can run them all.
//!
//! ```text
//! PROGRAM serve --listen ADDR               prints `READY <actual address>`, ends with its stdin
//! PROGRAM load  --connect ADDR --mode MODE  prints one JSON object on one line
//! ```
//!
//! The invariant: *a program either prints a result in which every reply was counted and checked,
//! or fails with a message on stderr.* The contract knows no protocol and shares no code with the
//! system that is measured against these programs.

mod address;
mod children;
mod clock;
mod counts;
mod failure;
mod flags;
mod frame;
mod histogram;
mod lifetime;
mod node;
mod options;
mod report;
mod tally;
mod zeroed;

pub use address::Address;
pub use children::Children;
pub use clock::{monotonic_ns, pin, process_cpu_ns};
pub use counts::Counts;
pub use failure::{Failure, Outcome};
pub use flags::Flags;
pub use frame::{Garbage, HEADER_SIZE, Header, Inbox};
pub use histogram::Histogram;
pub use lifetime::{
    announce, end_with_input, end_with_parent, end_with_signal, limit, remove_when_stopped,
};
pub use node::{own_program, run_node};
pub use options::{Bound, Load, Mode, Serve};
pub use report::Report;
pub use tally::Tally;
pub use zeroed::{ZeroedFile, take_place};

/// The longest silence, in seconds, that a load generator takes for slowness and not for a loss.
pub const SILENCE_SECONDS_MAX: u64 = 10;
