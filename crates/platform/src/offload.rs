//! The port for work that may wait for a disk, to be done outside of the threads that serve
//! connections.

/// A unit of work.
pub type Work = Box<dyn FnOnce() + Send>;

/// An executor of work.
pub trait Offload: Send + Sync {
    /// Executes the work before returning or later, in any order. Refused work is not executed.
    fn offload(&self, work: Work) -> Result<(), Overloaded>;
}

/// Too much work is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many operations wait for the disk")]
pub struct Overloaded;

impl Overloaded {
    /// Pause before a retry, in milliseconds.
    pub const RETRY_MS: u32 = 500;
}

/// Executes work inline, so that every run is the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Offload for Inline {
    fn offload(&self, work: Work) -> Result<(), Overloaded> {
        work();
        Ok(())
    }
}
