//! The quota engine: who may take how much, now or when.
//!
//! A *take* names one [`Subject`] and an amount for each of some [`Unit`]s. Every [`Limit`] whose
//! [`Pattern`] covers the subject keeps one [`Cell`] for the subject's prefix, and all of them must
//! agree, or nothing is consumed anywhere. Credit is an integer in units of *amount × nanoseconds of
//! the period*, so that no rational rate ever drifts.
//!
//! The engine only decides. It holds no lock, reads no clock and writes nothing: cells lie in
//! [`Table`]s, a [`Plan`] says which tables a take needs, in which order, and [`decide`] is handed
//! those, locked. What is admitted, journaled and told to whom is the shell's to say.
//!
//! Invariants: *over any stretch of time a bucket admits at most its capacity and what was refilled;
//! a take that is denied changes nothing; what was said of when a take will pass is exact; no change
//! of a limit, no eviction and no clock that steps back ever mints credit.*

mod admin;
mod calendar;
mod cell;
mod decide;
mod dial;
mod elsewhere;
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
mod subject;
mod table;
mod unit;
mod zone;

pub use admin::{AdminError, Halt, Override};
pub use calendar::Every;
pub use cell::{Cell, When};
pub use decide::{Decision, Denied, Refused, Standing, Warned, decide, look};
pub use dial::{Dial, Factor, FactorError};
pub use elsewhere::{Part, Told};
pub use hold::{Charge, Hold, HoldId, Holds, HoldsFull};
pub use key::{Key, Seed};
pub use limit::{
    AMOUNT_MAX, Bucket, Durability, Kind, Limit, LimitId, Mode, PERIOD_NS_MAX, Unreachable,
    WEIGHT_MAX,
};
pub use pattern::{Pattern, PatternError};
pub use plan::{Cost, Plan, Step};
pub use policies::{LIMITS_MAX, Mistake, Policies};
pub use queue::{Place, Queue};
pub use recent::Recent;
pub use rules::Rules;
pub use settle::{Settled, reset, settle};
pub use subject::{Prefix, Subject, SubjectError, Tier};
pub use table::{CellId, Found, Table, Tally};
pub use unit::{Unit, UnitError};
pub use zone::{OFFSET_MAX_S, Zone, ZoneError};
