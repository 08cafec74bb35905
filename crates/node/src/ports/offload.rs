//! Work that may wait for a disk, done apart from the threads that serve connections.

/// Something to be done.
pub type Work = Box<dyn FnOnce() + Send>;

/// Who does it.
pub trait Offload: Send + Sync {
    /// Has it done: before this returns, or later, in any order. What is refused is not done.
    fn offload(&self, work: Work) -> Result<(), Overloaded>;
}

/// As much waits to be done as there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too much waits for the disk")]
pub struct Overloaded;

impl Overloaded {
    /// After which pause another try makes sense, in milliseconds.
    pub const RETRY_MS: u32 = 500;
}

/// Does it at once, where it is asked for: the same in every run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Offload for Inline {
    fn offload(&self, work: Work) -> Result<(), Overloaded> {
        work();
        Ok(())
    }
}
