//! The task of a connection: handshake, reading, writing, keepalive, reconnecting.

pub(crate) mod binding;
pub(crate) mod buffers;
pub(crate) mod driver;
pub(crate) mod engine;
pub(crate) mod handshake;
pub(crate) mod intake;
pub(crate) mod port;
pub(crate) mod reply_frames;
pub(crate) mod timer;
pub(crate) mod writer;
