//! Quota cells shared by several nodes, in Redis or Redis Cluster.
//!
//! A Lua function on the server decides a whole take, with the server's clock and the arithmetic of
//! the quota engine on integers of any size ([`script`]). It is called by its digest, and sent in
//! full to a server that does not have it. The cells of an organisation are in one slot of a
//! cluster.
//!
//! Invariant: *after any failure, the admitted takes do not exceed what the server decided.* This
//! module knows Redis; it does not know rules, subjects or callers.

mod link;
pub mod script;
mod store;

pub use link::AddressError;
pub use store::{Options, Redis};
