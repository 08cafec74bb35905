//! A handler that panics is an error to its caller and to nobody else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use model::ErrorCode;

use crate::Fault;

/// Runs what may panic. The panic's message goes to the panic hook, not to the caller: it may
/// say more than a stranger should know.
pub(crate) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(|_| Fault::with_code(ErrorCode::Internal, "the handler panicked"))
}

/// Drops what may panic while it is dropped.
pub(crate) fn drop_quietly<T>(value: T) {
    let _ = catch(|| drop(value));
}
