//! What a handler is given.

use std::ops::Deref;

use bytes::Bytes;

use crate::Context;

/// One request: a body and its surroundings, which it dereferences to.
#[derive(Clone, Debug)]
pub struct Request {
    /// The bytes that the caller sent.
    pub body: Bytes,
    pub(crate) context: Context,
}

impl Request {
    /// The surroundings, to be kept when the body is given away.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

impl Deref for Request {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}
