//! Memory that a load has left behind.
//!
//! The allocator keeps what is freed for the next who asks. Each thread has a heap of its own, and
//! what others free in it comes back only when the thread itself looks: one that rests never does,
//! and a node that was busy would stay as large as it was.

use std::time::Duration;

use tokio::runtime::Handle;

/// How often a thread looks whether it rests.
const INTERVAL: Duration = Duration::from_secs(3);

/// A thread that works for less than this share of the time rests.
const REST_SHARE: u32 = 20;

/// Gives memory back to the system whenever this thread, whose runtime is its own, has rested.
pub(super) async fn tidy() {
    let metrics = Handle::current().metrics();
    let mut before = metrics.worker_total_busy_duration(0);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let busy = metrics.worker_total_busy_duration(0);
        if busy.saturating_sub(before) < INTERVAL / REST_SHARE {
            give_back();
        }
        before = busy;
    }
}

/// Has the allocator give back whatever this thread's heap, or nobody's, holds and nobody uses.
fn give_back() {
    #[expect(unsafe_code, reason = "the allocator's crate does not export it")]
    // SAFETY: the function of mimalloc, the allocator of this program, as its header declares it; it
    // may be called at any time from any thread.
    unsafe {
        unsafe extern "C" {
            fn mi_collect(force: bool);
        }
        mi_collect(true);
    }
}
