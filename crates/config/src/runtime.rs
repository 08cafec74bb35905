//! Options of threads.

options! {
    /// Threads.
    runtime, "Runtime";

    /// Number of threads that serve connections; 0 is one per processor.
    "runtime.workers" => workers: u32 = 0, from "0" to "1024";
}
