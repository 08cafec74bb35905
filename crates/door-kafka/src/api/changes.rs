//! Changes of topics: each is answered when it is durable, or was validated.

use std::collections::HashMap;

use kafka::ErrorCode;
use platform::Pending;
use topic_service::{AdminError, Execution};
use topics::Topic as About;

use crate::deadline::Deadline;
use crate::errors::Failed;

/// A change in progress, or its error.
pub(super) type Changing = Result<Pending<About, AdminError>, Failed>;

/// The entries of a request for one name.
pub(super) enum Once<T> {
    /// A single entry.
    One(T),
    /// More than one entry, of which this is the first: the request is ambiguous.
    Many(T),
}

/// Groups the entries by name, in the order of their first appearance.
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

/// Begins a change of each topic that is named once; the others get an error.
pub(super) fn begun<T>(
    asked: Vec<T>,
    name: impl Fn(&T) -> &str,
    begin: impl Fn(&T) -> Changing,
) -> Vec<(String, Changing)> {
    let twice = || {
        let message = "the request names the topic more than once";
        Failed::new(ErrorCode::InvalidRequest, message)
    };
    let each = once(asked, &name).into_iter().map(|one| match one {
        Once::One(topic) => (name(&topic).to_owned(), begin(&topic)),
        Once::Many(topic) => (name(&topic).to_owned(), Err(twice())),
    });
    each.collect()
}

/// Returns whether a change is done or only validated.
pub(super) fn execution(validate_only: bool) -> Execution {
    match validate_only {
        true => Execution::Try,
        false => Execution::Do,
    }
}

/// Waits for a change until the deadline.
pub(super) async fn changed(changing: Changing, deadline: Deadline) -> Result<About, Failed> {
    deadline.outcome(changing?).await
}

/// Waits for a change until the deadline, and returns only its error.
pub(super) async fn outcome(changing: Changing, deadline: Deadline) -> (ErrorCode, Option<String>) {
    match changed(changing, deadline).await {
        Ok(_) => (ErrorCode::None, None),
        Err(failed) => (failed.code, Some(failed.message)),
    }
}
