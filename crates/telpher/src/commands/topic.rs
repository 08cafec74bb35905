//! `telpher topic`: the topics that Kafka's clients share, without a Kafka client.
//!
//! What is asked about topics goes to the routes of the HTTP door, over the native one; records go
//! through the client.

mod admin;
mod consume;
mod produce;

use client::CallError;
use model::ErrorCode;

use super::conversation::ask::{Problem, Trouble, encode};
use super::target::{agent_name, tell_call_failure};
use crate::failure::{Exit, Failure};
use crate::output::Format;
use crate::serve::HTTP_AGENT;

const EXAMPLES: &str = "\
Examples:
  telpher topic create orders --partitions 6 --config retention.ms=86400000
  telpher topic produce orders 'two books' --key customer-7
                                             a record; its key says in which partition it is
  telpher topic produce orders --key-separator < orders.tsv
                                             a record for each line of the standard input: key, tab, value
  telpher topic consume orders --follow      every record of every partition, and those to come
  telpher topic consume orders --partition 2 --from 100 --max 10 --json
  telpher topic describe orders              its configuration, and where its partitions stand
  telpher topic list

Kafka's own clients use the same topics at the Kafka door: kcat -b 127.0.0.1:9092 -C -t orders";

/// Make topics, produce and consume records: those that Kafka's clients see
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List the topics
    List(admin::ListArgs),
    /// Show what a topic is, and where its partitions stand
    Describe(admin::NameArgs),
    /// Make a topic
    Create(admin::CreateArgs),
    /// Give a topic more partitions, or another configuration
    Alter(admin::AlterArgs),
    /// Delete a topic and everything in it
    Delete(admin::NameArgs),
    /// Append records; they are on disk when this returns
    Produce(produce::Args),
    /// Print records; with --follow, also those to come
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

/// Where the route of a topic is.
fn path_of(topic: &str) -> String {
    format!("/v1/topics/{}", encode(topic))
}

/// A key and its value, as in `retention.ms=1000`.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let pair = pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "write KEY=VALUE".to_owned())
}

/// Why there is no answer, as a person reads it; for programs also as JSON.
fn tell(format: Format, topic: &str, trouble: Trouble) -> Failure {
    match trouble {
        Trouble::Refused(problem) => match problem.print(format) {
            Ok(()) => refused(topic, &problem),
            Err(unprinted) => unprinted,
        },
        Trouble::Call(error) => tell_call(format, topic, &error),
        told @ Trouble::Told(_) => told.tell(format, None),
    }
}

fn refused(topic: &str, problem: &Problem) -> Failure {
    let message = format!("{}: {}", problem.code, problem.detail);
    let start = problem.extra.get("start");
    let start = start.and_then(serde_json::Value::as_u64);
    Failure::new(Exit::from(problem.code), message).hint(hint(topic, problem.code, start))
}

/// The same for what was asked over the native door.
fn tell_call(format: Format, topic: &str, error: &CallError) -> Failure {
    let start = error.details.first_chunk().copied().map(u64::from_le_bytes);
    let message = format!("{}: {}", error.code, error.message);
    let failure =
        Failure::new(Exit::from(error.code), message).hint(hint(topic, error.code, start));
    match agent_name(HTTP_AGENT) {
        // What programs are told is what they are told of any call.
        Ok(name) if format.json => Failure {
            errors: failure.errors,
            ..tell_call_failure(format, &name, error)
        },
        _ => failure,
    }
}

fn hint(topic: &str, code: ErrorCode, start: Option<u64>) -> String {
    match (code, start) {
        (ErrorCode::NotFound, _) => format!(
            "`telpher topic list` lists them; `telpher topic create {topic}` makes this one"
        ),
        (ErrorCode::Conflict, _) => format!("`telpher topic describe {topic}` shows it"),
        (ErrorCode::Trimmed, Some(start)) => {
            format!("the oldest record that is kept is at --from {start}")
        }
        (ErrorCode::InvalidArgument, _) => {
            format!(
                "`telpher topic describe {topic}` shows what it is; `telpher topic --help` how to ask"
            )
        }
        (ErrorCode::TooLarge, _) => {
            "max.message.bytes of the topic says how much it takes at once".to_owned()
        }
        (ErrorCode::Denied, _) => {
            "topics.partitions_max and namespace.names_max of the node say how many".to_owned()
        }
        (code, _) => CallError::new(code, "").hint().to_owned(),
    }
}
