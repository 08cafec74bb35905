//! Answers to the requests of peers.

use std::future::Future;
use std::pin::Pin;

/// An answer: what appends its body. `None` if the request gets no answer.
pub(super) type Answer = Option<Box<dyn FnOnce(&mut Vec<u8>) + Send>>;

/// A request that is being served.
pub(super) type Serving = Pin<Box<dyn Future<Output = Answer> + Send>>;
