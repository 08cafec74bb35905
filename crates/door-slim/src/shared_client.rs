//! A client that other threads may send for.
//!
//! Only the client's task reads, handles messages and uses timers. A thread that has queued a
//! message for a client whose task is idle writes it to the socket itself, which saves waking the
//! thread of that task.
//!
//! Invariant: *a thread waits for the lock of its own client only.* It tries the locks of others,
//! and wakes their tasks if it does not get them.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use parking_lot::Mutex;

use super::client::Client;
use super::outlet::{Receiver, SlimOutlet};

/// A client behind a lock; `None` once it has ended.
pub(super) struct SharedClient(Mutex<Option<Box<Client>>>);

/// The task's hold on its client, which ends with it.
pub(super) struct OwnedClient(Arc<SharedClient>);

impl OwnedClient {
    /// Creates a client, which gets the address at which other threads find it.
    pub(super) fn new(create: impl FnOnce(Weak<SharedClient>) -> Client) -> Self {
        Self(Arc::new_cyclic(|shared| {
            let client = Box::new(create(shared.clone()));
            SharedClient(Mutex::new(Some(client)))
        }))
    }

    /// Serves the client; ready when it has ended.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut *self.0.0.lock() {
            Some(client) => client.poll(cx),
            None => Poll::Ready(()),
        }
    }
}

impl Drop for OwnedClient {
    fn drop(&mut self) {
        // Not under the lock, and not on a thread that sends for the client.
        let client = self.0.0.lock().take();
        drop(client);
    }
}

impl Receiver for SharedClient {
    fn try_send(&self, outlet: &SlimOutlet) -> bool {
        let Some(mut client) = self.0.try_lock() else {
            return false;
        };
        client
            .as_mut()
            .is_none_or(|client| client.send_queued(outlet))
    }
}
