//! The output of one Kafka client, and the end of its connection.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use model::Failure;
use net::{Outbox, Sink};

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

impl messaging::Client for KafkaOutlet {
    fn goaway(&self, _drain_ms: u32, _message: &str) {
        self.leaving.store(true, Ordering::Release);
        self.outbox.wake();
    }

    fn dismiss(&self, failure: Failure<'_>) {
        // The first reason stays.
        let _ = self.dismissal.set(failure.message.to_owned());
        self.outbox.wake();
    }

    fn close(&self) {
        self.outbox.close();
    }

    fn queued_size(&self) -> usize {
        self.outbox.queued_size()
    }
}
