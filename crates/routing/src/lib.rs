//! The routing engine: who is subscribed, whom a message reaches, which calls are pending.
//!
//! It only decides. What a peer *is* stays a type parameter, time is a number that is handed in,
//! and concurrency is the shell's choice: matching takes `&self`, so any number of readers may
//! match at once, and the rare changes take `&mut self`. It knows no sockets, no clocks and no
//! other engine.

mod calls;
mod table;

pub use calls::{Call, Calls, Ticket};
pub use table::{ConnectionId, Match, NameView, Subscribed, Subscriber, Table, Target};
