//! What the node reaches out to, behind ports that it defines.
//!
//! Whatever is here may be slow, away or wrong at any time, and the node is none of that because of
//! it: whoever asks it is answered within a bounded time, if only that it is away.
//!
//! It knows SQL, Redis, HTTP and the network. It does not know the doors, and decides nothing about
//! conversations.

pub mod archive;
pub mod redis;
pub mod webhook;
