//! Two endpoints with a network between them that a test can break, and messages recorded from real
//! libraries.

mod clients;
mod pair;
mod rejected_messages;
mod reliable;
mod unreliable;
