//! The outlet to one Kafka client.
//!
//! A Kafka client subscribes to no name and makes no calls: of everything that the node pushes to
//! clients, only the end of the connection applies to it.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use net::{Outbox, Sink};
use node::{Failure, Outgoing, Outlet, Pushed};

/// The outlet to one Kafka client.
pub(super) struct KafkaOutlet {
    pub(super) outbox: Outbox,
    /// The node shuts down: open requests are answered, and nothing more is read.
    leaving: AtomicBool,
    /// The reason why the node closes the connection, once it does.
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
        // The first reason stays.
        let _ = self.dismissal.set(failure.message.to_owned());
        self.outbox.wake();
    }

    fn close(&self) {
        self.outbox.close();
    }
}
