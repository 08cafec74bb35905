//! `Arrival`: a received message, borrowed from the read buffer.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use wire::Payload;

use super::bodies;
use super::request::Request;
use crate::Metadata;
use crate::connection::binding::{Binding, BindingRef};
use crate::context::{Context, Delivery};

/// A message for a receiver. It borrows its parts: the runner creates the request directly in its
/// final place, because each layer in between would copy it.
pub(crate) struct Arrival<'a> {
    pub(super) binding: &'a Arc<Binding>,
    pub(super) message: &'a Payload<'a>,
    pub(super) deadline: Option<Instant>,
    /// Present for a message from a mailbox.
    pub(super) delivery: Option<&'a Delivery>,
}

impl Arrival<'_> {
    pub(crate) fn method(&self) -> &str {
        &self.binding.method
    }

    #[inline(always)]
    pub(super) fn body(&self) -> Bytes {
        bodies::copy(self.message.body)
    }

    #[inline(always)]
    pub(super) fn context(&self) -> Context {
        Context {
            binding: BindingRef::to(self.binding),
            metadata: match self.message.metadata {
                [] => None,
                block => Some(Box::new(Metadata::from_block(block))),
            },
            deadline: self.deadline,
            delivery: self.delivery.copied().map(Box::new),
        }
    }

    #[inline(always)]
    pub(super) fn request(&self) -> Request {
        Request {
            body: self.body(),
            context: self.context(),
        }
    }
}
