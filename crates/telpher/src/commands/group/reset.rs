//! `telpher group reset-offsets`.

use clap::ArgGroup;
use console::output::{self, table};
use console::{Environment, Failure};
use serde_json::{Map, Value, json};

use super::{path_of, report};
use crate::commands::agents::{rows, text};
use crate::commands::conversation::http::{HttpRequest, Node, parse};
use crate::commands::target::{NodeArgs, block_on};

const EXAMPLES: &str = "\
Examples:
  telpher group reset-offsets billing --to-earliest --dry-run
  telpher group reset-offsets billing --topic orders --to-latest
  telpher group reset-offsets billing --topic orders --partition 0,2 --to-offset 4200
  telpher group reset-offsets billing --to-datetime 2026-11-28T12:00:00Z
  telpher group reset-offsets billing --shift-by -100

The group must have no members: stop its consumers first. An offset outside of a partition becomes \
the nearest one inside. The token needs the role admin.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group(
    ArgGroup::new("position")
        .required(true)
        .args(["to_earliest", "to_latest", "to_offset", "to_datetime", "shift_by"])
))]
pub(crate) struct Args {
    /// Name of the group
    group: String,

    /// Topic whose offsets are reset [default: every topic with a committed offset]
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,

    /// Partitions of the topic [default: all]
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "topic")]
    partition: Vec<u32>,

    /// Reset to the first existing record
    #[arg(long)]
    to_earliest: bool,

    /// Reset to the end of each partition
    #[arg(long)]
    to_latest: bool,

    /// Reset to this offset
    #[arg(long, value_name = "OFFSET")]
    to_offset: Option<u64>,

    /// Reset to the first record that is not older than this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    to_datetime: Option<String>,

    /// Add this number to each committed offset
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    shift_by: Option<i64>,

    /// Print what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    node: NodeArgs,
}

pub(super) fn run(args: &Args, environment: &Environment) -> Result<(), Failure> {
    let (format, group) = (args.node.format, &args.group);
    let request = HttpRequest::new("POST", format!("{}/offsets", path_of(group)));
    let request = request.body(&body(args));
    let request = request.map_err(|error| report(format, group, error))?;
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let answer = node.ask(&request).await;
        let answer = parse(&answer.map_err(|error| report(format, group, error))?)?;
        output::print(format, &answer, &describe(&answer))
    })
}

fn body(args: &Args) -> Value {
    let edge = match (args.to_earliest, args.to_latest) {
        (true, _) => Some("earliest"),
        (false, true) => Some("latest"),
        (false, false) => None,
    };
    let partitions = (!args.partition.is_empty()).then_some(&args.partition);
    let fields = [
        ("topic", args.topic.as_ref().map(|it| json!(it))),
        ("partitions", partitions.map(|it| json!(it))),
        ("to", edge.map(|it| json!(it))),
        ("offset", args.to_offset.map(|it| json!(it))),
        ("time", args.to_datetime.as_ref().map(|it| json!(it))),
        ("shift", args.shift_by.map(|it| json!(it))),
        ("dry_run", Some(json!(args.dry_run))),
    ];
    let given = fields.into_iter();
    let given = given.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(Map::from_iter(given))
}

/// Formats the changes of a reset.
fn describe(answer: &Value) -> String {
    let changes = rows(answer, "partitions");
    let lines: Vec<_> = changes.iter().map(line).collect();
    let titles = ["TOPIC", "PARTITION", "PRESENT", "NEW", "LAG", "CHANGE"];
    let group = text(&answer["group"]);
    let count = match changes.len() {
        1 => "1 offset".to_owned(),
        count => format!("{count} offsets"),
    };
    let summary = match answer["dry_run"] == true {
        true => format!("dry run: {count} of {group} would be reset"),
        false => format!("{count} of {group} reset"),
    };
    format!("{}{summary}\n", table(titles, &lines))
}

fn line(change: &Value) -> [String; 6] {
    let [topic, partition, new, lag] =
        ["topic", "partition", "offset", "lag_after"].map(|key| text(&change[key]));
    let number = |key: &str| change[key].as_u64();
    let present = number("committed").map_or_else(|| "-".to_owned(), |it| it.to_string());
    let by = match (number("lag_before"), number("lag_after")) {
        (Some(before), Some(after)) => format!("{:+}", i128::from(after) - i128::from(before)),
        _ => "-".to_owned(),
    };
    [topic, partition, present, new, lag, by]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_a_table_with_the_difference_in_lag() {
        let answer = json!({"group": "billing", "dry_run": true, "partitions": [
            {"topic": "orders", "partition": 0, "committed": 41, "offset": 0, "lag_before": 9, "lag_after": 50},
            {"topic": "orders", "partition": 1, "committed": null, "offset": 7, "lag_before": null, "lag_after": 0},
        ]});
        assert_eq!(
            describe(&answer),
            "TOPIC   PARTITION  PRESENT  NEW  LAG  CHANGE\n\
             orders          0  41         0   50  +41\n\
             orders          1  -          7    0  -\n\
             dry run: 2 offsets of billing would be reset\n"
        );
    }
}
