//! The platform: what every service of the node needs and no service owns.
//!
//! Time, randomness, small files, background work and the cluster's [`Membership`] are ports, so that
//! a simulation can replace them. [`Pending`] is an outcome that is known later, [`Durable`] a wait for the disk. A
//! [`Platform`] holds the ports and the counters of one node; services share it by `Arc`.
//!
//! This crate knows the journal's tickets. It does not know streams by name, clients, sockets or any
//! service. Invariant: *nothing is reported as durable before the journal reports it.*

mod bell;
mod clock;
mod context;
mod counters;
mod disk;
mod durable;
mod durations;
mod later;
mod membership;
mod name_map;
mod offload;
mod owner;
mod pending;
mod platform;
mod stripes;
#[cfg(feature = "testing")]
pub mod testing;
mod trace;

pub use bell::Bell;
pub use clock::{Clock, Entropy, Ports};
pub use context::RequestContext;
pub use counters::{Counter, Counters, Tally};
pub use disk::{Disk, DiskError, Lock, LockError, RealDisk};
pub use durable::{Durable, NotDurable};
pub use durations::{Durations, DurationsView, Verb, VerbDurations};
pub use later::Later;
pub use membership::{
    Alone, CALL_SIZE_MAX, CallError, CallFuture, Member, Membership, PeerReplication, PeerState,
    ShardReplication, ShardRole,
};
pub use name_map::NameMap;
pub use offload::{Inline, Offload, Overloaded, Work};
pub use owner::{ForeignOwner, check_owner};
pub use pending::Pending;
pub use platform::Platform;
pub use stripes::Stripes;
pub use trace::{
    AttributeValue, EndedSpan, Span, SpanKind, TraceContext, Tracer, TracerCounts, TracerOptions,
};
