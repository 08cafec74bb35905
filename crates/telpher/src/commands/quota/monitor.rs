//! `telpher quota top` and `telpher quota watch`.

use console::output::{self, Format, one_line, table};
use console::{Environment, Failure};
use serde_json::{Value, json};

use super::report::report;
use crate::commands::conversation::events::{Event, Reader};
use crate::commands::conversation::http::{HttpError, HttpRequest, Node, parse, query};
use crate::commands::target::{NodeArgs, block_on};

#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Order of the rows
    #[arg(long, value_enum, default_value_t = TopOrder::Taken)]
    by: TopOrder,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum TopOrder {
    /// Current use of the bucket
    Taken,
    /// Denied takes since the start of the node
    Denied,
    /// Current debt of the bucket
    Debt,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// End after this number of events
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    #[command(flatten)]
    node: NodeArgs,
}

pub(super) fn run_top(args: &TopArgs, environment: &Environment) -> Result<(), Failure> {
    let by = match args.by {
        TopOrder::Taken => "taken",
        TopOrder::Denied => "denied",
        TopOrder::Debt => "debt",
    };
    let query = query(&[
        ("by", Some(by.to_owned())),
        ("count", Some(args.limit.to_string())),
    ]);
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let answer = node.ask(&HttpRequest::get(format!("/v1/top{query}"))).await;
        let answer = parse(&answer.map_err(|error| report(args.node.format, error))?)?;
        let rows = answer["rows"].as_array();
        let rows: Vec<_> = rows.into_iter().flatten().map(row).collect();
        let human = table(["COUNT", "LIMIT", "NAME"], &rows);
        output::print(args.node.format, &answer, &human)
    })
}

fn row(row: &Value) -> [String; 3] {
    let text = |member: &str| row[member].as_str().unwrap_or("-").to_owned();
    [row["count"].to_string(), text("limit"), text("name")]
}

pub(super) fn run_watch(args: &WatchArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        watch(args, &node)
            .await
            .map_err(|error| report(args.node.format, error))
    })
}

async fn watch(args: &WatchArgs, node: &Node) -> Result<(), HttpError> {
    let mut pieces = node.open(&HttpRequest::get("/v1/watch")).await?;
    let (mut reader, mut left) = (Reader::default(), args.limit.unwrap_or(usize::MAX));
    let mut is_open = false;
    while let Some(piece) = pieces.next().await? {
        if !std::mem::replace(&mut is_open, true) {
            output::note("watching");
        }
        for event in reader.feed(&piece) {
            output::print_text(&shown(args.node.format, &event)?)?;
            left -= 1;
            if left == 0 {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Formats an event as a line.
fn shown(format: Format, event: &Event) -> Result<String, Failure> {
    let data = parse(event.data.as_bytes())?;
    if format.json {
        let value = json!({ "event": event.kind, "data": data });
        return Ok(format!("{value}\n"));
    }
    let text = |member: &str| data[member].as_str().unwrap_or_default();
    let mut line = format!("{} {} {}", text("at"), event.kind, text("about"));
    if let Some(limit) = data["limit"].as_str() {
        line.push_str(&format!(" by {limit}"));
    }
    if let Some(share) = data["share"].as_f64() {
        line.push_str(&format!(" at {:.1} %", share * 100.0));
    }
    if let Some(count) = data["count"].as_u64() {
        line.push_str(&format!(" {count}"));
    }
    Ok(format!("{}\n", one_line(line.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, kind: &str, data: &str) -> String {
        let event = Event {
            id: "1".to_owned(),
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        shown(format, &event).unwrap()
    }

    #[test]
    fn an_event_is_a_line() {
        let human = Format { json: false };
        let data = r#"{"at":"2026-03-21T12:00:00Z","about":"acme/x/a","limit":"rps"}"#;
        let line = check(human, "denied", data);
        assert_eq!(line, "2026-03-21T12:00:00Z denied acme/x/a by rps\n");
        let data = r#"{"at":"T","about":"acme","limit":"usd","share":0.8}"#;
        assert_eq!(
            check(human, "threshold", data),
            "T threshold acme by usd at 80.0 %\n"
        );
        assert_eq!(check(human, "missed", r#"{"count":3}"#), "missed  3\n");
        let json = check(Format { json: true }, "missed", r#"{"count":3}"#);
        assert_eq!(json, "{\"data\":{\"count\":3},\"event\":\"missed\"}\n");
    }
}
