//! Administration and retention of raw streams.

use std::time::Duration;

use client::{Fault, Request, Server};
use config::stream::Options;
use model::{ErrorCode, Name};
use node::Node;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Retention, StreamView, StreamsError};

use super::mailboxes::{check_halt, streams};

/// Time between two applications of the retention.
const INTERVAL: Duration = Duration::from_secs(10);

/// The request to delete records of a stream.
#[derive(Debug, Deserialize, Serialize)]
pub struct Trim {
    /// The stream's name: `org/namespace/x`.
    pub name: String,
    /// Records before this offset are deleted; `None` deletes all.
    pub before: Option<u64>,
}

/// Adds the methods `trim_stream` and `delete_stream` to the node's agent.
pub(super) fn methods(server: Server, node: &Node) -> Server {
    let server = method(server, node, "trim_stream", |node, trim| {
        let Some(before) = trim.before else {
            let message = "`before` is missing: the first offset that is kept";
            return Err(Fault::with_code(ErrorCode::InvalidArgument, message));
        };
        streams(node)?.trim(&trim.name, before).map_err(fault)
    });
    method(server, node, "delete_stream", |node, trim| {
        streams(node)?.delete(&trim.name).map_err(fault)
    })
}

fn method(
    server: Server,
    node: &Node,
    name: &'static str,
    answer: fn(&Node, Trim) -> Result<StreamView, Fault>,
) -> Server {
    let node = node.clone();
    server.handle(name, move |request: Request| {
        let node = node.clone();
        async move {
            let trim: Trim = serde_json::from_slice(&request.body)
                .map_err(|error| Fault::with_code(ErrorCode::InvalidArgument, error.to_string()))?;
            check_access(&node, request.context().source(), &trim.name)?;
            // The deletion waits for the disk.
            let done = tokio::task::spawn_blocking(move || answer(&node, trim)).await;
            match done {
                Ok(Ok(view)) => Ok(stream(&view).to_string()),
                Ok(Err(fault)) => Err(fault),
                Err(error) => Err(Fault::new(format!("the deletion failed: {error}"))),
            }
        }
    })
}

/// Checks that the caller is an administrator, or that its token is bound to a pattern that matches
/// the name, and that it is not halted.
fn check_access(node: &Node, source: Option<&str>, name: &str) -> Result<(), Fault> {
    let facts = source.and_then(|source| node.messaging().facts_of_source(source));
    let name = Name::parse(name)
        .map_err(|error| Fault::with_code(ErrorCode::InvalidArgument, error.to_string()))?;
    match facts {
        Some(facts) if facts.principal.may_use(&name) => check_halt(node, &facts.principal),
        _ => {
            let message = format!("this token may not delete records of `{}`", name.base());
            Err(Fault::with_code(ErrorCode::Denied, message))
        }
    }
}

fn fault(error: StreamsError) -> Fault {
    Fault::with_code(error.code(), error.to_string())
}

fn stream(view: &StreamView) -> Value {
    json!({ "name": view.name, "start": view.start, "next": view.next })
}

/// Applies the configured retention for ever.
pub(super) async fn tend(node: Node, options: Options) {
    let keep = Retention {
        age: Some(options.retention).filter(|age| !age.is_zero()),
        bytes: Some(options.retention_size.as_u64()).filter(|bytes| *bytes > 0),
    };
    let streams = match node.streams() {
        Some(streams) if !keep.is_off() => streams.clone(),
        _ => return std::future::pending().await,
    };
    loop {
        let streams = streams.clone();
        // Retention reads from disk.
        let applied = tokio::task::spawn_blocking(move || streams.apply_retention(keep)).await;
        if let Ok(Err(error)) = applied {
            let error = error.to_string();
            tracing::warn!(error, "retention of streams failed; it is retried");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
