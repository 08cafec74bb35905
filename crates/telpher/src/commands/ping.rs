//! `telpher ping`: measures round trips to an agent.

use std::time::Duration;

use client::{CallError, Caller};
use console::{Environment, Exit, Failure, call_failure, output};
use model::{ErrorCode, Name, PING_METHOD};
use serde_json::json;
use tokio::time::Instant;

use super::target::{NodeArgs, agent_name, block_on};
use crate::settings::parse_duration;

const EXAMPLES: &str = "\
Every agent answers: an unknown_method error is an answer too.

Examples:
  telpher ping acme/demo/echo
  telpher ping acme/demo/echo -c 1000 -i 0s --json";

/// Measure round trips to an agent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the agent, with or without an instance
    agent: String,

    /// Number of round trips
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000)
    )]
    count: u32,

    /// Pause between round trips
    #[arg(short, long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,

    /// Time limit of each round trip
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    deadline: Duration,

    #[command(flatten)]
    node: NodeArgs,
}

/// The round trips so far.
#[derive(Debug, Default)]
struct RoundTrips {
    sent: u32,
    round_trips: Vec<Duration>,
    last_error: Option<CallError>,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let name = agent_name(&args.agent)?;
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let caller = client
            .caller(name.as_str())
            .map_err(|error| Failure::new(Exit::Usage, error))?;
        let mut seen = RoundTrips::default();
        tokio::select! {
            pinged = ping_all(&args, &caller, &mut seen) => pinged?,
            // An interrupted command prints its summary too.
            _ = tokio::signal::ctrl_c() => {}
        }
        summarize(&args, &name, &seen)?;
        match seen.last_error {
            Some(error) if seen.round_trips.is_empty() => Err(call_failure(&name, &error)),
            Some(error) => {
                let lost = seen.sent as usize - seen.round_trips.len();
                let message = format!("{lost} of {} were not answered", seen.sent);
                Err(Failure::new(Exit::from(error.code), message)
                    .hint(format!("see `telpher explain {}`", error.code)))
            }
            None => Ok(()),
        }
    })
}

async fn ping_all(args: &Args, caller: &Caller, seen: &mut RoundTrips) -> Result<(), Failure> {
    for number in 1..=args.count {
        if number > 1 {
            tokio::time::sleep(args.interval).await;
        }
        let start = Instant::now();
        let outcome = caller.call(PING_METHOD, "").deadline(args.deadline).await;
        let elapsed = start.elapsed();
        seen.sent = number;
        let line = match outcome {
            Err(error) if !is_answer(error.code) => {
                let line = format!("{}: {}", error.code, error.message);
                seen.last_error = Some(error);
                line
            }
            _ => {
                seen.round_trips.push(elapsed);
                format!("{:>10.3} ms", millis(elapsed))
            }
        };
        if !args.node.format.json {
            output::print_text(&format!("{number:>5}  {line}\n"))?;
        }
    }
    Ok(())
}

/// True for errors that the agent itself returns.
fn is_answer(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::UnknownMethod | ErrorCode::HandlerError | ErrorCode::InvalidArgument
    )
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn summarize(args: &Args, name: &Name, seen: &RoundTrips) -> Result<(), Failure> {
    let (sent, answered) = (seen.sent, seen.round_trips.len());
    let mut value = json!({ "agent": name.as_str(), "sent": sent, "answered": answered });
    let mut human = format!("{name}: {sent} sent, {answered} answered\n");
    if let Some(figures) = figures(&seen.round_trips) {
        for (key, figure) in KEYS.into_iter().zip(figures) {
            value[format!("{key}_ms")] = figure.into();
        }
        let all: Vec<f64> = seen.round_trips.iter().copied().map(millis).collect();
        value["round_trips_ms"] = all.into();
        let texts = figures.map(|figure| format!("{figure:.3}"));
        human.push_str(&format!("{} = {} ms\n", KEYS.join("/"), texts.join("/")));
    }
    output::print(args.node.format, &value, &human)
}

const KEYS: [&str; 5] = ["min", "mean", "p50", "p99", "max"];

/// Returns the figures in milliseconds, in the order of [`KEYS`]; `None` without round trips.
fn figures(round_trips: &[Duration]) -> Option<[f64; 5]> {
    let mut sorted = round_trips.to_vec();
    sorted.sort();
    let count = sorted.len();
    // The smallest value that at least this share of the round trips does not exceed.
    let percentile = |share: f64| {
        let rank = (share * count as f64).ceil() as usize;
        millis(sorted[rank.clamp(1, count) - 1])
    };
    let (min, max) = (millis(*sorted.first()?), millis(*sorted.last()?));
    let mean = sorted.iter().copied().map(millis).sum::<f64>() / count as f64;
    Some([min, mean, percentile(0.5), percentile(0.99), max])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ping_figures_are_computed_from_the_sample() {
        let sample: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(figures(&sample), Some([1.0, 50.5, 50.0, 99.0, 100.0]));
        assert_eq!(figures(&sample[..1]), Some([1.0; 5]));
        assert_eq!(figures(&[]), None);
    }
}
