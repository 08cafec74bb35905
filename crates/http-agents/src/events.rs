//! The items of a streamed answer as server-sent events.
//!
//! Items are read as far as the connection has room, and the responder gets credit for what was
//! read: a client that does not read costs the items that the responder may be ahead.

use std::ops::ControlFlow;
use std::task::{Context, Poll};

use http_api::sse::{FRAME_SIZE, Source};
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::metadata;
use crate::problem;
use crate::replies::Item;
use crate::request::TAG;

/// Number of items after whose reading credit is returned: half of what a responder may be ahead.
const CREDIT: u32 = 32;

/// The items of a call, as the source of an event stream.
pub(crate) struct ItemEvents {
    caller: Caller,
    /// Number of items that no credit was returned for.
    read: u32,
}

impl ItemEvents {
    /// Returns the items of the call of `caller`.
    pub(crate) fn new(caller: Caller) -> Self {
        Self { caller, read: 0 }
    }

    fn count_item(&mut self) {
        self.read += 1;
        if self.read == CREDIT {
            self.read = 0;
            self.caller.connection.turn().stream_credit(TAG, CREDIT);
        }
    }
}

impl Source for ItemEvents {
    fn gather(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> ControlFlow<()> {
        while out.len() < FRAME_SIZE {
            let Poll::Ready(next) = self.caller.replies.poll_next(cx.waker()) else {
                return ControlFlow::Continue(());
            };
            match next {
                Ok(item) => {
                    // The last reply of a stream is empty; that of a whole answer is not.
                    if item.more || !item.body.is_empty() {
                        push_item(out, &item);
                    }
                    if !item.more {
                        push_event(out, "end", &Value::Object(Map::new()));
                        return ControlFlow::Break(());
                    }
                    self.count_item();
                }
                Err(failed) => {
                    let problem = problem::of_failure(&failed.failure());
                    push_event(out, "error", &problem.document());
                    return ControlFlow::Break(());
                }
            }
        }
        // More items may be there: the source is polled again when these are written.
        ControlFlow::Continue(())
    }
}

fn push_item(out: &mut Vec<u8>, item: &Item) {
    let mut object = Map::new();
    metadata::insert(&mut object, &item.metadata, &item.body);
    push_event(out, "item", &Value::Object(object));
}

/// Appends an event. The JSON has no line breaks.
fn push_event(out: &mut Vec<u8>, event: &str, data: &Value) {
    out.extend_from_slice(format!("event: {event}\ndata: {data}\n\n").as_bytes());
}
