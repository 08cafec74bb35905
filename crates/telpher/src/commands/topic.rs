//! `telpher topic`: manages, writes and reads the topics of the Kafka listener.
//!
//! Administration uses the routes of the HTTP listener over the native protocol; records are
//! appended and read by the client library.

mod admin;
mod consume;
mod produce;

use client::CallError;
use model::ErrorCode;

use super::conversation::http::{HttpError, Problem, encode};
use super::target::{agent_name, report_call_failure};
use crate::failure::{Exit, Failure};
use crate::output::Format;
use crate::serve::HTTP_AGENT;

const EXAMPLES: &str = "\
Examples:
  telpher topic create orders --partitions 6 --config retention.ms=86400000
  telpher topic produce orders 'two books' --key customer-7
                                             one record; its key selects the partition
  telpher topic produce orders --key-separator < orders.tsv
                                             one record per input line: key, tab, value
  telpher topic consume orders --follow      all records of all partitions, and new ones
  telpher topic consume orders --partition 2 --from 100 --max 10 --json
  telpher topic describe orders              show its configuration and its partitions
  telpher topic list

Kafka clients use the same topics at the Kafka listener: kcat -b 127.0.0.1:9092 -C -t orders";

/// Manage Kafka topics; produce and consume their records
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List the topics
    List(admin::ListArgs),
    /// Show the configuration and the partitions of a topic
    Describe(admin::NameArgs),
    /// Create a topic
    Create(admin::CreateArgs),
    /// Add partitions to a topic, or change its configuration
    Alter(admin::AlterArgs),
    /// Delete a topic and all its records
    Delete(admin::NameArgs),
    /// Append records; returns when they are on disk
    Produce(produce::Args),
    /// Print records; with --follow, also new ones
    Consume(consume::Args),
}

pub(crate) fn run(
    command: Command,
    environment: &crate::settings::Environment,
) -> Result<(), Failure> {
    match command {
        Command::List(args) => admin::run_list(&args, environment),
        Command::Describe(args) => admin::run_describe(&args, environment),
        Command::Create(args) => admin::run_create(&args, environment),
        Command::Alter(args) => admin::run_alter(&args, environment),
        Command::Delete(args) => admin::run_delete(&args, environment),
        Command::Produce(args) => produce::run(&args, environment),
        Command::Consume(args) => consume::run(&args, environment),
    }
}

/// Returns the path of a topic's HTTP route.
fn path_of(topic: &str) -> String {
    format!("/v1/topics/{}", encode(topic))
}

/// Parses a key and its value: `retention.ms=1000`.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let pair = pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "write KEY=VALUE".to_owned())
}

/// Converts an error of an HTTP route to a failure; with `--json`, also prints it to the standard
/// output.
fn report(format: Format, topic: &str, error: HttpError) -> Failure {
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
fn report_call(format: Format, topic: &str, error: &CallError) -> Failure {
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
