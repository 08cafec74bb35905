//! `telpher group`: shows the consumer groups of the Kafka listener, and resets their offsets.
//!
//! The commands use the routes of the HTTP listener over the native protocol.

mod reset;

use client::CallError;
use console::output::{self, Format, table};
use console::url::encode;
use console::{Environment, Exit, Failure};
use model::ErrorCode;
use serde_json::{Value, json};

use crate::commands::agents::{rows, text};
use crate::commands::conversation::http::{HttpError, HttpRequest, Node, Problem, parse, query};
use crate::commands::target::{NodeArgs, block_on};

/// Number of groups per request.
const PAGE: &str = "1000";

const EXAMPLES: &str = "\
Examples:
  telpher group list
  telpher group describe billing             show its members, and its lag in each partition
  telpher group reset-offsets billing --to-earliest --dry-run
                                             show what a reset would change
  telpher group reset-offsets billing --topic orders --to-datetime 2026-11-28T12:00:00Z
                                             read `orders` again from a time on
  telpher group reset-offsets billing --topic orders --partition 2 --shift-by -100
                                             read 100 records of a partition again";

/// Show consumer groups; reset their offsets
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List the consumer groups with their lag
    List(ListArgs),
    /// Show the members and the offsets of a consumer group
    Describe(DescribeArgs),
    /// Reset the offsets of a consumer group without members
    ResetOffsets(reset::Args),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Prefix of names to list
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DescribeArgs {
    /// Name of the group
    group: String,

    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::List(args) => run_list(&args, environment),
        Command::Describe(args) => run_describe(&args, environment),
        Command::ResetOffsets(args) => reset::run(&args, environment),
    }
}

fn run_list(args: &ListArgs, environment: &Environment) -> Result<(), Failure> {
    let format = args.node.format;
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let groups = list(&node, &args.prefix).await;
        let groups = groups.map_err(|error| report(format, &args.prefix, error))?;
        let line = |group: &Value| ["group", "state", "members", "lag"].map(|it| text(&group[it]));
        let lines: Vec<_> = groups.iter().map(line).collect();
        let human = table(["GROUP", "STATE", "MEMBERS", "LAG"], &lines);
        output::print(format, &json!({ "groups": groups }), &human)
    })
}

/// Reads the whole list, page by page.
async fn list(node: &Node, prefix: &str) -> Result<Vec<Value>, HttpError> {
    let (mut groups, mut after) = (Vec::new(), None);
    loop {
        let query = query(&[
            ("prefix", Some(prefix.to_owned())),
            ("limit", Some(PAGE.to_owned())),
            ("after", after),
        ]);
        let request = HttpRequest::get(format!("/v1/groups{query}"));
        let page = parse(&node.ask(&request).await?)?;
        groups.extend_from_slice(rows(&page, "groups"));
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => return Ok(groups),
        }
    }
}

fn run_describe(args: &DescribeArgs, environment: &Environment) -> Result<(), Failure> {
    let format = args.node.format;
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let answer = node.ask(&HttpRequest::get(path_of(&args.group))).await;
        let answer = answer.map_err(|error| report(format, &args.group, error))?;
        let group = parse(&answer)?;
        output::print(format, &group, &describe(&group))
    })
}

/// Formats a group: its state, its members and its offsets.
fn describe(group: &Value) -> String {
    let [name, state, protocol] = ["group", "state", "protocol"].map(|it| text(&group[it]));
    let protocol = match protocol.as_str() {
        "" | "-" => String::new(),
        protocol => format!(", assignor {protocol}"),
    };
    let member = |it: &Value| ["member", "client_id", "client_host"].map(|key| text(&it[key]));
    let members: Vec<_> = rows(group, "members").iter().map(member).collect();
    let offset =
        |it: &Value| ["topic", "partition", "committed", "end", "lag"].map(|key| text(&it[key]));
    let offsets: Vec<_> = rows(group, "partitions").iter().map(offset).collect();
    let mut shown = format!("{name}\n  state {state}{protocol}\n");
    if !members.is_empty() {
        shown += &format!("\n{}", table(["MEMBER", "CLIENT", "ADDRESS"], &members));
    }
    if !offsets.is_empty() {
        let titles = ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"];
        shown += &format!("\n{}", table(titles, &offsets));
    }
    shown
}

/// Returns the path of a group's HTTP route.
fn path_of(group: &str) -> String {
    format!("/v1/groups/{}", encode(group))
}

/// Converts an error of an HTTP route to a failure; with `--json`, also prints it to the standard
/// output.
fn report(format: Format, group: &str, error: HttpError) -> Failure {
    match error {
        HttpError::Refused(problem) => match problem.print(format) {
            Ok(()) => refused(group, &problem),
            Err(unprinted) => unprinted,
        },
        other => other.report(format, None),
    }
}

fn refused(group: &str, problem: &Problem) -> Failure {
    let message = format!("{}: {}", problem.code, problem.detail);
    let hint = match problem.code {
        ErrorCode::NotFound => {
            "`telpher group list` lists the groups, `telpher topic list` the topics".to_owned()
        }
        ErrorCode::Conflict => format!("`telpher group describe {group}` shows the members"),
        ErrorCode::InvalidArgument => "see `telpher group reset-offsets --help`".to_owned(),
        code => CallError::new(code, "").hint().to_owned(),
    };
    Failure::new(Exit::from(problem.code), message).hint(hint)
}
