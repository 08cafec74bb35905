//! State that producers and the injector of faults share.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use meter::clock::now_ns;

/// Time that is never reached.
const NEVER: u64 = u64::MAX;

/// State that producers and the injector of faults share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Addresses of all nodes.
    pub(super) addresses: Vec<String>,
    pub(super) topic: &'static str,
    /// Tag that identifies the messages.
    pub(super) tag: u32,
    /// Size of a payload in bytes.
    pub(super) size: usize,
    is_over: AtomicBool,
    /// Time of the last fault.
    fault_ns: AtomicU64,
    /// Time of the first ack of a request that was sent after the fault.
    first_ack_ns: AtomicU64,
    /// Time of the last ack.
    last_ack_ns: AtomicU64,
    /// Longest time between two acks since the fault.
    gap_ns: AtomicU64,
    /// Reasons of repetitions.
    retries: Mutex<BTreeMap<String, u64>>,
}

impl Shared {
    pub(super) fn new(addresses: Vec<String>, topic: &'static str, tag: u32, size: usize) -> Self {
        Self {
            addresses,
            topic,
            tag,
            size,
            is_over: AtomicBool::new(false),
            fault_ns: AtomicU64::new(NEVER),
            first_ack_ns: AtomicU64::new(NEVER),
            last_ack_ns: AtomicU64::new(now_ns()),
            gap_ns: AtomicU64::new(0),
            retries: Mutex::default(),
        }
    }

    /// Ends the producers, each when its last message is acknowledged.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Marks the time of a fault that has just been injected.
    pub(super) fn fault_begins(&self) {
        self.first_ack_ns.store(NEVER, Ordering::SeqCst);
        self.gap_ns.store(0, Ordering::SeqCst);
        self.fault_ns.store(now_ns(), Ordering::SeqCst);
    }

    /// Returns the milliseconds from the fault to the first ack of a later request.
    pub(super) fn first_ack_ms(&self) -> Option<f64> {
        let first_ns = self.first_ack_ns.load(Ordering::SeqCst);
        let fault_ns = self.fault_ns.load(Ordering::SeqCst);
        (first_ns != NEVER).then(|| first_ns.saturating_sub(fault_ns) as f64 / 1e6)
    }

    /// Ends the fault, and returns the longest time without an ack since it began.
    pub(super) fn fault_ends_gap_ms(&self) -> f64 {
        self.fault_ns.store(NEVER, Ordering::SeqCst);
        self.gap_ns.load(Ordering::SeqCst) as f64 / 1e6
    }

    /// Notes an ack of a request that was sent at `sent_ns`.
    pub(super) fn acknowledged(&self, sent_ns: u64) {
        let now_ns = now_ns();
        let last_ns = self.last_ack_ns.swap(now_ns, Ordering::SeqCst);
        self.gap_ns
            .fetch_max(now_ns.saturating_sub(last_ns), Ordering::SeqCst);
        if sent_ns > self.fault_ns.load(Ordering::SeqCst) {
            self.first_ack_ns.fetch_min(now_ns, Ordering::SeqCst);
        }
    }

    /// Counts a repetition.
    pub(super) fn retried(&self, reason: &str) {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        *retries.entry(reason.to_owned()).or_default() += 1;
    }

    /// Returns the repetitions by reason.
    pub(super) fn retries(&self) -> BTreeMap<String, u64> {
        let retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        retries.clone()
    }
}
