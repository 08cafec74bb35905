//! `Request`: the argument of a handler.

use std::ops::Deref;

use bytes::Bytes;

use crate::Context;

/// A request: the body and a [`Context`], to which it dereferences.
#[derive(Clone, Debug)]
pub struct Request {
    /// Bytes that the caller sent. A small body shares its memory, 512 bytes at most, with others.
    pub body: Bytes,
    pub(crate) context: Context,
}

impl Request {
    /// Returns the context; clone it to keep it after the request is gone.
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
