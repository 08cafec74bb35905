//! Cells of quotas that several nodes share, in a Redis or a Redis Cluster.
//!
//! One function on the server decides a take as a whole, by the server's clock, with the engine's
//! arithmetic on whole numbers of any size ([`script`]). It is called by its digest and sent along
//! when the server does not know it. Cells of an organisation lie in one slot of a cluster.
//!
//! Invariant: *whatever fails, at most what was decided on the server is admitted.* It knows Redis;
//! it does not know rules, subjects or who asks.

mod link;
pub mod script;
mod store;

pub use link::AddressError;
pub use store::{Options, Redis};
