//! The way out to one Kafka client, as the node knows it.
//!
//! A Kafka client subscribes to no name and calls nobody: of all that the node pushes to clients, it
//! can only be told to go.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use net::{Outbox, Sink};
use node::{Failure, Outgoing, Outlet, Pushed};

/// See the module's documentation.
pub(super) struct KafkaOutlet {
    pub(super) outbox: Outbox,
    /// The node goes down: what is under way is answered, and nothing more is read.
    leaving: AtomicBool,
    /// Why the client is sent away, once it is.
    dismissal: OnceLock<String>,
}

impl KafkaOutlet {
    pub(super) fn new(sink: Arc<dyn Sink>) -> Self {
        Self {
            outbox: Outbox::new(sink),
            leaving: AtomicBool::new(false),
            dismissal: OnceLock::new(),
        }
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    pub(super) fn dismissal(&self) -> Option<&str> {
        self.dismissal.get().map(String::as_str)
    }
}

impl Outlet for KafkaOutlet {
    fn push(&self, outgoing: Outgoing<'_>) -> Pushed {
        if let Outgoing::Goaway { .. } = outgoing {
            self.leaving.store(true, Ordering::Release);
            self.outbox.wake();
            return Pushed::Queued;
        }
        Pushed::Closed
    }

    fn flush(&self) {
        self.outbox.flush();
    }

    fn queued_size(&self) -> usize {
        self.outbox.queued_size()
    }

    fn dismiss(&self, failure: Failure<'_>) {
        // The first reason is the reason.
        let _ = self.dismissal.set(failure.message.to_owned());
        self.outbox.wake();
    }

    fn close(&self) {
        self.outbox.close();
    }
}
