//! Properties that hold for every limit and every sequence of requests: one per invariant.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod bounds;
mod changes;
mod holds;
mod oracle;
mod time;
mod world;
