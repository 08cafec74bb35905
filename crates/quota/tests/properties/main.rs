//! What holds for every limit, whatever is asked of it: each invariant is a property.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod bounds;
mod changes;
mod holds;
mod oracle;
mod time;
mod world;
