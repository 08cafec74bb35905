//! Catches panics of handlers, so that a panic becomes an error for its caller only.

use std::panic::{AssertUnwindSafe, catch_unwind};

use model::ErrorCode;

use crate::Fault;

/// Runs code that may panic. The panic message goes to the panic hook and not to the caller,
/// because it may contain confidential details.
pub(crate) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(|_| Fault::with_code(ErrorCode::Internal, "the handler panicked"))
}

/// Drops a value whose destructor may panic.
pub(crate) fn drop_quietly<T>(value: T) {
    let _ = catch(|| drop(value));
}
