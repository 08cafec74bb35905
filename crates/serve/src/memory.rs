//! Returns free memory to the system after a load.
//!
//! The allocator keeps freed memory for later allocations. Each thread has its own heap, and memory
//! that other threads free in it is collected only by the owning thread. An idle thread never
//! collects it, so an idle node would keep the memory of its last load.

use std::time::Duration;

use tokio::runtime::Handle;

/// Time between two checks for idleness.
const INTERVAL: Duration = Duration::from_secs(3);

/// A thread that works for less than this share (1/20) of the interval is idle.
const REST_SHARE: u32 = 20;

/// Returns free memory to the system whenever this thread, which has its own runtime, is idle.
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

/// Makes the allocator return the unused memory of this thread's heap and of abandoned heaps.
fn give_back() {
    #[expect(unsafe_code, reason = "the allocator's crate does not export it")]
    // SAFETY: the declaration is that of mimalloc's header, and mimalloc is the allocator of this
    // program; the function may be called at any time from any thread.
    unsafe {
        unsafe extern "C" {
            fn mi_collect(force: bool);
        }
        mi_collect(true);
    }
}
