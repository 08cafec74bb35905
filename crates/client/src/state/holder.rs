//! `Holder`: the receiver of a call's outcome, which occupies a slot of the table of calls.

use std::task::Waker;

use crate::state::items::Items;
use crate::state::outcome::{FunctionIndex, OnceFunction, Outcome};
use crate::state::registry::PendingSubscription;

/// Receiver of a call's outcome.
pub(crate) enum Holder {
    /// Free slot, with the next one in the free list.
    Free(u32),
    /// The call was given up.
    Abandoned,
    /// A future, with its waker after the first poll.
    Future(Option<Waker>),
    /// A future that has not taken its outcome yet.
    Done(Outcome),
    /// A function registered for many calls, and the call's tag.
    Callback(FunctionIndex, u64),
    /// A function for this call.
    Once(OnceFunction),
    /// A stream of items.
    Stream(Box<Items>),
    /// A subscription in progress. It has no deadline: if it is given up, it is ended after the
    /// confirmation.
    Subscribing(Box<PendingSubscription>),
}
