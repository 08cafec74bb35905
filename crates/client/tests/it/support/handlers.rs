//! Handlers that tests can look into.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use client::Server;
use tokio::sync::{Notify, Semaphore};

/// A server with one method, `echo`.
pub(crate) fn echo() -> Server {
    Server::new().handle("echo", |request: client::Request| async move {
        Ok(request.body)
    })
}

/// A count that can be waited for.
#[derive(Clone, Default)]
pub(crate) struct Probe {
    shared: Arc<(AtomicUsize, Notify)>,
}

impl Probe {
    pub(crate) fn add(&self, count: usize) {
        self.shared.0.fetch_add(count, Ordering::AcqRel);
        self.shared.1.notify_waiters();
    }

    pub(crate) fn count(&self) -> usize {
        self.shared.0.load(Ordering::Acquire)
    }

    /// Waits until at least so much was counted.
    pub(crate) async fn reaches(&self, count: usize) {
        loop {
            let mut notified = std::pin::pin!(self.shared.1.notified());
            notified.as_mut().enable();
            if self.count() >= count {
                return;
            }
            notified.await;
        }
    }
}

/// Counts when it is dropped: a handler that holds one shows when it ends.
pub(crate) struct Guard(pub(crate) Probe);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.add(1);
    }
}

/// Handlers that wait until they are let through.
#[derive(Clone)]
pub(crate) struct Gate {
    permits: Arc<Semaphore>,
    /// Handlers that have begun.
    pub(crate) entered: Probe,
    /// Handlers that have ended, or were dropped.
    pub(crate) left: Probe,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(0)),
            entered: Probe::default(),
            left: Probe::default(),
        }
    }

    /// `server` with a method `wait` that echoes when it is let through.
    pub(crate) fn on(&self, server: Server) -> Server {
        let gate = self.clone();
        server.handle("wait", move |request: client::Request| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok(request.body)
            }
        })
    }

    /// Waits to be let through.
    pub(crate) async fn pass(&self) {
        let _guard = Guard(self.left.clone());
        self.entered.add(1);
        self.permits.acquire().await.unwrap().forget();
    }

    /// Lets so many through, now or when they come.
    pub(crate) fn let_through(&self, count: usize) {
        self.permits.add_permits(count);
    }
}
