//! Outcomes of calls, and functions that receive them.

use bytes::Bytes;

use crate::CallError;
use crate::state::reply_batch::ReplyBatch;

/// Outcome of a call.
pub(crate) type Outcome = Result<Bytes, CallError>;

/// An answer, borrowed from the chunk that was read.
pub(crate) type Answer<'a> = Result<&'a [u8], CallError>;

/// A function called for the outcomes of many calls. It is called until it has taken all of a batch,
/// or returns.
pub(crate) type Callback = dyn Fn(&mut ReplyBatch<'_>) + Send + Sync;

/// A function called with the reply of one call.
pub(crate) type OnceFunction = Box<dyn FnOnce(Result<&[u8], &CallError>) + Send>;

/// Index of a [`Callback`] in the table of a connection.
pub(crate) type FunctionIndex = u32;
