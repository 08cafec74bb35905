//! Routes, settings and failures of topic commands.

use client::CallError;
use console::output::Format;
use console::url::encode;
use console::{Exit, Failure};
use model::ErrorCode;
use serve::HTTP_AGENT;

use crate::commands::conversation::http::{HttpError, Problem};
use crate::commands::target::{agent_name, report_call_failure};

/// Returns the path of a topic's HTTP route.
pub(super) fn path_of(topic: &str) -> String {
    format!("/v1/topics/{}", encode(topic))
}

/// Parses a key and its value: `retention.ms=1000`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let pair = pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "write KEY=VALUE".to_owned())
}

/// Converts an error of an HTTP route to a failure; with `--json`, also prints it to the standard
/// output.
pub(super) fn report(format: Format, topic: &str, error: HttpError) -> Failure {
    match error {
        HttpError::Refused(problem) => match problem.print(format) {
            Ok(()) => refused(topic, &problem),
            Err(unprinted) => unprinted,
        },
        HttpError::Call(error) => report_call(format, topic, &error),
        local @ HttpError::Local(_) => local.report(format, None),
    }
}

fn refused(topic: &str, problem: &Problem) -> Failure {
    let message = format!("{}: {}", problem.code, problem.detail);
    let start = problem.extra.get("start");
    let start = start.and_then(serde_json::Value::as_u64);
    Failure::new(Exit::from(problem.code), message).hint(hint(topic, problem.code, start))
}

/// Converts an error of a native call to a failure; with `--json`, also prints it to the standard
/// output.
pub(super) fn report_call(format: Format, topic: &str, error: &CallError) -> Failure {
    let start = error.details.first_chunk().copied().map(u64::from_le_bytes);
    let message = format!("{}: {}", error.code, error.message);
    let failure =
        Failure::new(Exit::from(error.code), message).hint(hint(topic, error.code, start));
    match agent_name(HTTP_AGENT) {
        // The JSON is the same as for any call.
        Ok(name) if format.json => Failure {
            errors: failure.errors,
            ..report_call_failure(format, &name, error)
        },
        _ => failure,
    }
}

fn hint(topic: &str, code: ErrorCode, start: Option<u64>) -> String {
    match (code, start) {
        (ErrorCode::NotFound, _) => format!(
            "`telpher topic list` lists the topics; `telpher topic create {topic}` creates this one"
        ),
        (ErrorCode::Conflict, _) => format!("`telpher topic describe {topic}` shows the topic"),
        (ErrorCode::Trimmed, Some(start)) => {
            format!("the oldest stored record is at --from {start}")
        }
        (ErrorCode::InvalidArgument, _) => {
            format!("see `telpher topic describe {topic}` and `telpher topic --help`")
        }
        (ErrorCode::TooLarge, _) => {
            "max.message.bytes of the topic limits the size of a batch".to_owned()
        }
        (ErrorCode::Denied, _) => {
            "topics.partitions_max and namespace.names_max limit the partitions of the node"
                .to_owned()
        }
        (code, _) => CallError::new(code, "").hint().to_owned(),
    }
}
