//! [`Platform`]: the ports and the counters of one node.

use std::sync::Arc;
use std::task::{Context, Poll};

use model::WallClock;
use parking_lot::Mutex;

use crate::bell::Bell;
use crate::clock::Ports;
use crate::counters::Counters;
use crate::durations::VerbDurations;
use crate::later::Later;
use crate::membership::Membership;
use crate::offload::{Offload, Overloaded, Work};
use crate::pending::Pending;
use crate::trace::Tracer;

/// The ports and the counters of one node, shared by its services. It holds no service.
pub struct Platform {
    /// Time and randomness.
    pub ports: Ports,
    /// The counters.
    pub counters: Counters,
    /// Durations of requests over the native protocol.
    pub durations: VerbDurations,
    /// The source of spans; `None` if none are exported.
    pub tracer: Option<Arc<Tracer>>,
    /// The nodes of the cluster, and the leaders of the shards.
    pub membership: Arc<dyn Membership>,
    /// The wall clock by which records expire.
    expiry_clock: Mutex<WallClock>,
    /// The executor of work that may wait for the disk.
    offload: Arc<dyn Offload>,
    /// Rung when there is something to sweep after there was nothing.
    sweep_needed: Bell,
}

impl Platform {
    /// Creates a platform whose counters are 0 and that asks for no sweep.
    pub fn new(ports: Ports, offload: Arc<dyn Offload>, membership: Arc<dyn Membership>) -> Self {
        Self {
            ports,
            counters: Counters::default(),
            durations: VerbDurations::default(),
            tracer: None,
            membership,
            expiry_clock: Mutex::default(),
            offload,
            sweep_needed: Bell::default(),
        }
    }

    /// Returns the platform with a source of spans, or without one.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Option<Arc<Tracer>>) -> Self {
        self.tracer = tracer;
        self
    }

    /// Returns the monotonic time in nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.ports.clock.now_ns()
    }

    /// Returns the wall clock, in milliseconds since 1970-01-01 UTC.
    #[inline]
    pub fn unix_ms(&self) -> u64 {
        self.ports.clock.unix_ms()
    }

    /// Returns the time by which records expire and are erased, in milliseconds since 1970-01-01
    /// UTC: the wall clock without unconfirmed steps.
    pub fn expiry_ms(&self) -> u64 {
        let clock = &self.ports.clock;
        let steady_ms = clock.now_ns() / 1_000_000;
        self.expiry_clock.lock().read(steady_ms, clock.unix_ms())
    }

    /// Returns whether the wall clock stepped forward without confirmation; until then nothing
    /// expires.
    pub fn is_clock_doubted(&self) -> bool {
        // Reading the clock detects a new step.
        self.expiry_ms();
        self.expiry_clock.lock().is_doubted()
    }

    /// Asks for a sweep of the node.
    pub fn need_sweep(&self) {
        self.sweep_needed.ring();
    }

    /// Ready when there is something to sweep after there was nothing. Only one task may wait.
    pub fn poll_sweep_needed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.sweep_needed.listen(cx.waker());
        match self.sweep_needed.has_rung() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Executes work that may wait for the disk. The caller must hold no lock, because the work may
    /// run inline.
    pub fn offload_work(&self, work: Work) -> Result<(), Overloaded> {
        self.offload.offload(work)
    }

    /// Computes a value on a thread that may wait for the disk.
    pub fn offload_value<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Arc<Later<T>>, Overloaded> {
        let later = Arc::new(Later::default());
        let put = later.clone();
        self.offload_work(Box::new(move || put.put(compute())))?;
        Ok(later)
    }

    /// Runs work on a thread that may wait for the disk.
    pub fn offload<T, E>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Pending<T, E>
    where
        T: Send + 'static,
        E: From<Overloaded> + Send + 'static,
    {
        self.offload_pending(move || work().map(Pending::now))
    }

    /// Runs work on a thread that may wait for the disk; its outcome may be known later still.
    pub fn offload_pending<T, E>(
        &self,
        work: impl FnOnce() -> Result<Pending<T, E>, E> + Send + 'static,
    ) -> Pending<T, E>
    where
        T: Send + 'static,
        E: From<Overloaded> + Send + 'static,
    {
        let decide = move || work().unwrap_or_else(|error| Pending::known(Err(error)));
        match self.offload_value(decide) {
            Ok(later) => Pending::later(later),
            Err(overloaded) => Pending::known(Err(overloaded.into())),
        }
    }
}
