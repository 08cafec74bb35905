//! Changes of topics: each is answered when it is on disk, or was only tried.

use std::collections::HashMap;

use kafka::ErrorCode;
use node::topics::{About, AdminError, Execution, Pending};

use crate::kafka::deadline::Deadline;
use crate::kafka::errors::Failed;

/// A change that was begun, or why it was not.
pub(super) type Changing = Result<Pending<Result<About, AdminError>>, Failed>;

/// What is asked about a name in one request.
pub(super) enum Once<T> {
    /// One thing.
    One(T),
    /// More than one, of which this is the first: nobody can say which is meant.
    Many(T),
}

/// Each name once, in the order in which they are asked about.
pub(super) fn once<T>(asked: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<Once<T>> {
    let mut counts = HashMap::new();
    for one in &asked {
        *counts.entry(name(one).to_owned()).or_insert(0_usize) += 1;
    }
    let each = asked.into_iter();
    let each = each.filter_map(|one| match counts.remove(name(&one))? {
        1 => Some(Once::One(one)),
        _ => Some(Once::Many(one)),
    });
    each.collect()
}

/// Begins a change of each topic that is named once, and says of others that they stand there twice.
pub(super) fn begun<T>(
    asked: Vec<T>,
    name: impl Fn(&T) -> &str,
    begin: impl Fn(&T) -> Changing,
) -> Vec<(String, Changing)> {
    let twice = || {
        let message = "the topic stands twice in the request";
        Failed::new(ErrorCode::InvalidRequest, message)
    };
    let each = once(asked, &name).into_iter().map(|one| match one {
        Once::One(topic) => (name(&topic).to_owned(), begin(&topic)),
        Once::Many(topic) => (name(&topic).to_owned(), Err(twice())),
    });
    each.collect()
}

/// Whether it is done, or only tried.
pub(super) fn execution(validate_only: bool) -> Execution {
    match validate_only {
        true => Execution::Try,
        false => Execution::Do,
    }
}

/// What came of it by then.
pub(super) async fn changed(changing: Changing, deadline: Deadline) -> Result<About, Failed> {
    deadline.told(changing?).await
}

/// What came of it, where no more is told than whether it failed.
pub(super) async fn outcome(changing: Changing, deadline: Deadline) -> (ErrorCode, Option<String>) {
    match changed(changing, deadline).await {
        Ok(_) => (ErrorCode::None, None),
        Err(failed) => (failed.code, Some(failed.message)),
    }
}
