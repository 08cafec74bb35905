//! Handlers that tests can observe.

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

/// A counter that tests can wait for.
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

    /// Waits until the counter has reached a value.
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

/// Increments a counter when it is dropped, to detect the end of a handler.
pub(crate) struct Guard(pub(crate) Probe);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.add(1);
    }
}

/// Handlers that wait for permission to continue.
#[derive(Clone)]
pub(crate) struct Gate {
    permits: Arc<Semaphore>,
    /// Handlers that have started.
    pub(crate) entered: Probe,
    /// Handlers that have completed or were dropped.
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

    /// Adds a method `wait` to `server` that echoes once it may continue.
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

    /// Waits for the permission.
    pub(crate) async fn pass(&self) {
        let _guard = Guard(self.left.clone());
        self.entered.add(1);
        self.permits.acquire().await.unwrap().forget();
    }

    /// Lets this many handlers continue, now or when they start.
    pub(crate) fn unblock(&self, count: usize) {
        self.permits.add_permits(count);
    }
}
