//! The quota engine: decides which takes are admitted, and when a denied one would pass.
//!
//! A *take* names one [`Subject`] and amounts of one or more [`Unit`]s. Every [`Limit`] whose
//! [`Pattern`] covers the subject has one [`Cell`] for the subject's prefix. A take is admitted if
//! all of these cells have enough credit; otherwise no cell is debited. Credit is an integer in
//! units of *amount × nanoseconds of the period*, so that rational rates never drift.
//!
//! The engine only decides. It takes no locks, reads no clock and writes nothing: cells lie in
//! [`Table`]s, a [`Plan`] names the tables that a take needs and their order, and [`decide`] is
//! called with those tables locked. The shell journals decisions and sends the answers.
//!
//! Invariants: *over any stretch of time a bucket admits at most its capacity plus the refill; a
//! denied take changes nothing; the predicted time of a denied take is exact; no change of a limit,
//! no eviction and no clock that steps back ever creates credit.*

mod admin;
mod calendar;
mod cell;
mod decide;
mod dial;
mod hold;
mod key;
mod limit;
mod pattern;
mod plan;
mod policies;
mod queue;
mod recent;
pub mod record;
mod rules;
mod settle;
mod shared_store;
mod spend;
mod subject;
mod table;
mod unit;
mod zone;

pub use admin::{AdminError, Halt, Override};
pub use calendar::Every;
pub use cell::{Cell, When};
pub use decide::{Decision, Denied, LimitState, Refused, Warned, decide, look};
pub use dial::{Dial, Factor, FactorError};
pub use hold::{Charge, Hold, HoldId, Holds, HoldsFull};
pub use key::{Key, Seed};
pub use limit::{
    AMOUNT_MAX, Bucket, Durability, Kind, Limit, LimitId, Mode, PERIOD_NS_MAX, Unreachable,
    WEIGHT_MAX,
};
pub use pattern::{Pattern, PatternError};
pub use plan::{Cost, Plan, Step};
pub use policies::{LIMITS_MAX, Mistake, Policies};
pub use queue::{Queue, QueuePosition};
pub use recent::Recent;
pub use rules::Rules;
pub use settle::{Settled, reset, settle};
pub use shared_store::{Part, StoreAnswer};
pub use subject::{Prefix, Subject, SubjectError, Tier};
pub use table::{CellId, CellLookup, Table, Tally};
pub use unit::{Unit, UnitError};
pub use zone::{OFFSET_MAX_S, Zone, ZoneError};
