//! [`CountingAllocator`]: the system's allocator, which counts the allocations of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// Counts allocations. A test sets it as its `#[global_allocator]`.
#[derive(Debug)]
pub struct CountingAllocator;

/// Returns the number of allocations of this thread so far.
pub fn allocated() -> u64 {
    ALLOCATED.get()
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed unchanged to the system allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + 1);
        // SAFETY: see above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: see above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + 1);
        // SAFETY: see above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
