//! `telpher quota usage`: what subjects have spent, by day and limit.

use console::output::{self, one_line, table};
use console::{Environment, Failure};
use serde_json::Value;

use super::report::report;
use crate::commands::conversation::http::{HttpRequest, Node, parse, query};
use crate::commands::target::{NodeArgs, block_on};

/// Rows that are requested at once.
const PAGE_ROWS: usize = 5_000;

#[derive(Debug, clap::Args)]
pub(crate) struct UsageArgs {
    /// First day (UTC), like 2026-11-01 [default: 29 days before the last one]
    #[arg(long, value_name = "DAY")]
    from: Option<String>,

    /// Last day (UTC), which is included [default: today]
    #[arg(long, value_name = "DAY")]
    to: Option<String>,

    /// Grouping of rows
    #[arg(long, value_enum, default_value_t = UsageOrder::Day)]
    by: UsageOrder,

    /// Only this limit
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,

    /// Only subjects of this pattern: acme, acme/search or 'acme/*/bot'
    #[arg(long, value_name = "PATTERN")]
    subject: Option<String>,

    /// Print comma-separated values (RFC 4180)
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum UsageOrder {
    /// A day, a limit and a subject
    Day,
    /// A limit and a subject, over all days
    Subject,
    /// A limit, over all days and subjects
    Limit,
}

impl UsageOrder {
    fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Subject => "subject",
            Self::Limit => "limit",
        }
    }

    /// Returns the members of a row.
    fn members(self) -> &'static [&'static str] {
        match self {
            Self::Day => &["day", "limit", "unit", "subject", "amount", "takes"],
            Self::Subject => &["limit", "unit", "subject", "amount", "takes"],
            Self::Limit => &["limit", "unit", "amount", "takes"],
        }
    }
}

pub(super) fn run(args: &UsageArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let usage = read(args, &node).await?;
        match args.csv {
            true => output::print_text(&csv(args.by, &usage)),
            false => output::print(args.node.format, &usage, &human(args.by, &usage)),
        }
    })
}

/// Reads all pages, and returns them as one.
async fn read(args: &UsageArgs, node: &Node) -> Result<Value, Failure> {
    let (mut whole, mut after) = (None::<Value>, None);
    loop {
        let query = query(&[
            ("from", args.from.clone()),
            ("to", args.to.clone()),
            ("by", Some(args.by.as_str().to_owned())),
            ("limit", args.limit.clone()),
            ("subject", args.subject.clone()),
            ("count", Some(PAGE_ROWS.to_string())),
            ("after", after),
        ]);
        let answer = node
            .ask(&HttpRequest::get(format!("/v1/usage{query}")))
            .await;
        let mut page = parse(&answer.map_err(|error| report(args.node.format, error))?)?;
        after = page["next"].as_str().map(str::to_owned);
        if let Some(members) = page.as_object_mut() {
            members.remove("next");
        }
        match &mut whole {
            None => whole = Some(page),
            Some(whole) => {
                if let (Some(rows), Some(more)) =
                    (whole["rows"].as_array_mut(), page["rows"].as_array_mut())
                {
                    rows.append(more);
                }
            }
        }
        if after.is_none() {
            return Ok(whole.unwrap_or_default());
        }
    }
}

/// Returns the cells of each row, as texts.
fn rows<'u>(by: UsageOrder, usage: &'u Value) -> impl Iterator<Item = Vec<String>> + 'u {
    let rows = usage["rows"].as_array().into_iter().flatten();
    rows.map(move |row| {
        let cell = |member: &&str| match &row[*member] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            number => number.to_string(),
        };
        by.members().iter().map(cell).collect()
    })
}

fn human(by: UsageOrder, usage: &Value) -> String {
    let members = by.members();
    let mut text = match members.len() {
        6 => shown::<6>(members, by, usage),
        5 => shown::<5>(members, by, usage),
        _ => shown::<4>(members, by, usage),
    };
    if usage["rows"].as_array().is_none_or(Vec::is_empty) {
        let day = |member: &str| usage[member].as_str().unwrap_or_default().to_owned();
        text = format!("no usage from {} to {}\n", day("from"), day("to"));
    }
    if usage["other_subjects"] == true {
        text.push_str(
            "\nA day had more than quota.usage_rows_max rows: the usage of further subjects is \
             counted together, as (others).\n",
        );
    }
    text
}

/// Formats rows as a table of `WIDTH` columns.
fn shown<const WIDTH: usize>(members: &[&str], by: UsageOrder, usage: &Value) -> String {
    let cells = |cells: Vec<String>| {
        let mut cells = cells.into_iter();
        std::array::from_fn(|index| match cells.next() {
            Some(cell) if cell.is_empty() && members[index] == "subject" => "(others)".to_owned(),
            cell => one_line(&cell.unwrap_or_default()),
        })
    };
    let rows: Vec<[String; WIDTH]> = rows(by, usage).map(cells).collect();
    let head: [String; WIDTH] = std::array::from_fn(|index| members[index].to_uppercase());
    table(head.each_ref().map(String::as_str), &rows)
}

/// Formats rows as comma-separated values; the subject of other subjects is empty.
fn csv(by: UsageOrder, usage: &Value) -> String {
    let head = by.members().iter().map(|it| (*it).to_owned()).collect();
    let mut text = String::new();
    for cells in std::iter::once::<Vec<String>>(head).chain(rows(by, usage)) {
        let cells: Vec<_> = cells.iter().map(|cell| quoted(cell)).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

/// Quotes a value if it has characters with a meaning in comma-separated values.
fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(others: bool) -> Value {
        let row = |subject: Value, amount: u64| {
            json!({"day": "2026-11-28", "limit": "a,b", "unit": "tokens", "subject": subject,
                   "amount": amount, "takes": 2})
        };
        json!({"rows": [row(Value::Null, 7), row(json!("acme/x/a"), 12)], "other_subjects": others})
    }

    #[test]
    fn usage_is_a_table_that_names_other_subjects() {
        let text = human(UsageOrder::Day, &usage(true));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "DAY         LIMIT  UNIT    SUBJECT   AMOUNT  TAKES"
        );
        assert_eq!(
            lines[1],
            "2026-11-28  a,b    tokens  (others)       7      2"
        );
        assert_eq!(
            lines[2],
            "2026-11-28  a,b    tokens  acme/x/a      12      2"
        );
        assert!(lines[4].contains("quota.usage_rows_max"), "{text}");
        assert_eq!(human(UsageOrder::Subject, &usage(false)).lines().count(), 3);
    }

    #[test]
    fn comma_separated_values_are_quoted() {
        assert_eq!(
            csv(UsageOrder::Subject, &usage(true)),
            "limit,unit,subject,amount,takes\n\"a,b\",tokens,,7,2\n\"a,b\",tokens,acme/x/a,12,2\n"
        );
        assert_eq!(quoted("say \"hi\""), "\"say \"\"hi\"\"\"");
    }
}
