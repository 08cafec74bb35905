//! The parts that several listeners need: accepting sockets within their budget, authentication,
//! the queue of answers, reading into a shared buffer, and waking many tasks at once.
//!
//! A listener (a *door* in the code) decodes bytes to calls of [`node::Node`] and encodes its
//! answers. It decides nothing, and knows no engines and disks. This crate knows no protocol: the
//! error texts here are those that two listeners share.
//!
//! Invariant: *a connection is served only with a permit of the socket budget, and a request only
//! with a [`Pass`] of the [`Gate`].*

mod accept;
mod answer_queue;
#[cfg(test)]
mod counted_waker;
mod gate;
mod pass_end;
mod patience;
mod quota;
pub mod reading;
mod spawn;
mod sweep;
pub mod topics;
mod wake_batch;

pub use accept::{Accepting, Listen, WhenFull};
pub use answer_queue::{AnswerQueue, Bound};
pub use gate::{Gate, Open, Pass, Refused, Role};
pub use pass_end::{PassEnd, drop_at_pass_end, leave_to_pass, take_from_pass};
pub use patience::Patience;
pub use quota::FOREIGN_HOLD;
pub use spawn::{Acceptor, Spawn, spawn_with};
pub use sweep::sweep;
pub use wake_batch::{WakeBatch, Wakers};
