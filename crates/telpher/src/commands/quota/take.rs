//! `telpher quota take`, `settle` and `peek`.

use std::time::Duration;

use client::quota::{Admitted, Denied, LimitState, Outcome, Take};
use client::{CallError, RetryPolicy};
use console::output::{self, Format, table};
use console::{Environment, Exit, Failure};
use serde_json::{Value, json};

use super::report::call_failure;
use crate::commands::target::{NodeArgs, block_on};
use crate::settings::parse_duration;

/// Maximum number of attempts of a request.
const ATTEMPTS: u32 = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct TakeArgs {
    /// Subject: org/namespace/agent, optionally with ?run=...
    subject: String,

    /// Cost: UNIT=COUNT, or COUNT of the unit `requests`
    #[arg(required = true, value_name = "COST", value_parser = parse_cost)]
    costs: Vec<(String, u64)>,

    /// Reserve the cost until `telpher quota settle`, for at most this time: 90s, 5m, 1d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    hold: Option<Duration>,

    /// Wait until the limits admit the take, for at most this time: 500ms, 2s, 5m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,

    /// Priority among waiting takes; higher goes first
    #[arg(long, value_name = "N", default_value_t = 0, requires = "wait")]
    priority: u8,

    /// Id of the take; a repeated take with the same id takes nothing
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SettleArgs {
    /// Hold, as `telpher quota take --hold` prints it
    #[arg(value_parser = parse_hold)]
    hold: u128,

    /// True cost: UNIT=COUNT; units that are not given keep the reserved cost
    #[arg(value_name = "COST", value_parser = parse_cost)]
    costs: Vec<(String, u64)>,

    /// Return the whole reserved cost
    #[arg(long, conflicts_with = "costs")]
    cancel: bool,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PeekArgs {
    /// Subject: org/namespace/agent, optionally with ?run=...
    subject: String,

    #[command(flatten)]
    node: NodeArgs,
}

pub(super) fn run(args: &TakeArgs, environment: &Environment) -> Result<(), Failure> {
    let mut take = Take::of(&args.subject).priority(args.priority);
    for (unit, count) in &args.costs {
        take = take.cost(unit, *count);
    }
    if let Some(hold) = args.hold {
        take = take.hold(hold);
    }
    if let Some(wait) = args.wait {
        take = take.wait(wait);
    }
    if let Some(id) = &args.id {
        take = take.id(id);
    }
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let quota = client.quota().retry(RetryPolicy::attempts(ATTEMPTS));
        match quota.take(&take).await {
            Ok(Outcome::Admitted(admitted)) => {
                let (value, human) = admitted_shown(&admitted);
                output::print(args.node.format, &value, &human)
            }
            Ok(Outcome::Denied(denied)) => Err(tell_denied(args.node.format, &denied)),
            Err(error) => Err(call_failure(args.node.format, &error)),
        }
    })
}

pub(super) fn run_settle(args: &SettleArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let quota = client.quota().retry(RetryPolicy::attempts(ATTEMPTS));
        let hold = quota.hold(args.hold);
        let costs = args.costs.iter().map(|(unit, count)| (&**unit, *count));
        let costs: Vec<_> = costs.collect();
        let settled: Result<bool, CallError> = match args.cancel {
            true => hold.cancel().await,
            false => hold.settle(&costs).await,
        };
        let was_held = settled.map_err(|error| call_failure(args.node.format, &error))?;
        let human = match was_held {
            true => "settled\n",
            false => "the hold had already ended\n",
        };
        output::print(args.node.format, &json!({ "settled": was_held }), human)
    })
}

pub(super) fn run_peek(args: &PeekArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let quota = client.quota().retry(RetryPolicy::attempts(ATTEMPTS));
        let limits = quota.peek(&args.subject).await;
        let limits = limits.map_err(|error| call_failure(args.node.format, &error))?;
        let value = json!({ "subject": args.subject, "limits": shown(&limits) });
        output::print(args.node.format, &value, &limits_table(&limits))
    })
}

fn admitted_shown(admitted: &Admitted) -> (Value, String) {
    let hold = admitted.hold.as_ref();
    let hold = hold.map(|hold| (format!("{:032x}", hold.id()), hold.ends_after()));
    let mut value = json!({ "allowed": true });
    let mut human = match admitted.is_repeat {
        true => "already admitted\n".to_owned(),
        false => "admitted\n".to_owned(),
    };
    if let Some((hold, ends_after)) = hold {
        human.push_str(&format!("hold {hold}\n"));
        value["hold"] = json!(hold);
        if let Some(ends_after) = ends_after {
            human.push_str(&format!("the hold expires in {}\n", seconds(ends_after)));
            value["hold_ends_ms"] = json!(milliseconds(ends_after));
        }
    }
    if admitted.is_repeat {
        value["repeat"] = json!(true);
    }
    if admitted.is_degraded {
        value["degraded"] = json!(true);
    }
    value["limits"] = shown(&admitted.limits);
    human.push_str(&limits_table(&admitted.limits));
    (value, human)
}

/// Formats limits as JSON.
fn shown(limits: &[LimitState]) -> Value {
    let limits = limits.iter().map(|limit| {
        let mut value = json!({
            "name": &*limit.limit,
            "unit": &*limit.unit,
            "remaining": limit.have,
            "capacity": limit.capacity,
            "reset_ms": limit.reset_after.map(milliseconds),
        });
        if limit.is_shadowed {
            value["would_deny"] = json!(true);
        }
        if limit.is_shared {
            value["shared"] = json!(true);
        }
        value
    });
    limits.collect()
}

/// Formats limits as a table.
fn limits_table(limits: &[LimitState]) -> String {
    if limits.is_empty() {
        return "no limit covers the subject\n".to_owned();
    }
    let rows: Vec<_> = limits
        .iter()
        .map(|limit| {
            let remark = match (limit.is_shadowed, limit.is_shared) {
                (true, _) => "would deny",
                (_, true) => "shared",
                _ => "",
            };
            [
                limit.limit.to_string(),
                limit.have.to_string(),
                limit.capacity.to_string(),
                limit.unit.to_string(),
                limit.reset_after.map_or_else(|| "-".to_owned(), seconds),
                remark.to_owned(),
            ]
        })
        .collect();
    table(["LIMIT", "LEFT", "OF", "UNIT", "FULL IN", ""], &rows)
}

fn tell_denied(format: Format, denied: &Denied) -> Failure {
    let error = CallError::from(denied.clone());
    let value = json!({
        "allowed": false,
        "code": error.code.as_str(),
        "limit": &*denied.limit,
        "unit": &*denied.unit,
        "have": denied.have,
        "need": denied.need,
        "retry_ms": denied.retry_after.map(milliseconds),
        "would_pass": denied.would_pass(),
        "exhausted": denied.is_exhausted,
    });
    if format.json
        && let Err(unprinted) = output::print(format, &value, "")
    {
        return unprinted;
    }
    let failure = Failure::new(Exit::OverLimit, denied);
    match (denied.retry_after, denied.would_pass()) {
        (Some(pause), _) => failure.hint(format!(
            "the take can pass after {}; --wait DURATION waits for it",
            seconds(pause)
        )),
        (None, 0) => {
            failure.hint("the limit does not refill; `telpher quota set --grant` adds an amount")
        }
        (None, some) => failure.hint(format!("a take of {some} can pass")),
    }
}

/// Returns the duration in milliseconds, rounded up, so that a retry is never too early.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn seconds(duration: Duration) -> String {
    let ms = milliseconds(duration);
    format!("{}.{:03}s", ms / 1_000, ms % 1_000)
}

fn parse_cost(text: &str) -> Result<(String, u64), String> {
    let (unit, count) = text.split_once('=').unwrap_or(("requests", text));
    let is_whole = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    match count.parse() {
        Ok(count) if is_whole && !unit.is_empty() => Ok((unit.to_owned(), count)),
        _ => Err("a cost is UNIT=COUNT, or COUNT of the unit `requests`".to_owned()),
    }
}

/// Parses a hold: 32 hexadecimal digits, or 16 of an older version.
fn parse_hold(text: &str) -> Result<u128, String> {
    let is_one = matches!(text.len(), 16 | 32) && text.bytes().all(|it| it.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| is_one);
    number.ok_or_else(|| format!("`{text}` is not a hold: 32 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_a_unit_and_a_count() {
        assert_eq!(parse_cost("3"), Ok(("requests".to_owned(), 3)));
        assert_eq!(parse_cost("tokens=0"), Ok(("tokens".to_owned(), 0)));
        for text in [
            "",
            "x",
            "=1",
            "tokens=",
            "tokens=-1",
            "tokens=1.5",
            "tokens=+1",
        ] {
            assert!(parse_cost(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_hold_is_32_digits_or_16_of_an_older_version() {
        assert_eq!(
            parse_hold("0000000000000001000000000000001c"),
            Ok(1 << 64 | 28)
        );
        assert_eq!(parse_hold("00000000000001c7"), Ok(455));
        for text in ["", "1c7", "+0000000000001c7", "00000000000001cg"] {
            assert!(parse_hold(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pause_is_rounded_up() {
        assert_eq!(seconds(Duration::from_nanos(1)), "0.001s");
        assert_eq!(seconds(Duration::from_millis(61_500)), "61.500s");
    }
}
