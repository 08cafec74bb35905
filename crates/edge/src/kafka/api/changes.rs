//! Changes of topics: each is answered when it is on disk, or was only tried.

use kafka::ErrorCode;
use node::topics::{About, AdminError, Execution, Pending};

use crate::kafka::errors::{Failed, told};

/// A change that was begun, or why it was not.
pub(super) type Changing = Result<Pending<Result<About, AdminError>>, Failed>;

/// Whether it is done, or only tried.
pub(super) fn execution(validate_only: bool) -> Execution {
    match validate_only {
        true => Execution::Try,
        false => Execution::Do,
    }
}

/// What came of it.
pub(super) async fn changed(changing: Changing) -> Result<About, Failed> {
    told(changing?.await)
}

/// What came of it, where no more is told than whether it failed.
pub(super) async fn outcome(changing: Changing) -> (ErrorCode, Option<String>) {
    match changed(changing).await {
        Ok(_) => (ErrorCode::None, None),
        Err(failed) => (failed.code, Some(failed.message)),
    }
}
