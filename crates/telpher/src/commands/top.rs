//! `telpher top`: the numbers of a node in the terminal.

use std::io::IsTerminal;
use std::time::Duration;

use console::output;
use console::{Environment, Failure};
use serve::{HTTP_AGENT, SYSTEM_AGENT};
use top::{INTERVALS, OwnAgents, View};

use super::target::{NodeArgs, block_on};
use crate::settings::parse_duration;

const EXAMPLES: &str = "\
Views:
  agents     instances, calls in flight, deliveries, mailboxes, denied takes
  topics     records per second, size, lag of the consumer groups
  groups     state and lag of each consumer group
  mailboxes  messages that wait, the age of the oldest, dead letters
  quotas     takes by limit, denied subjects, buckets in use
  node       every rate and size, memory, disk sync times, failures by code
  cluster    the members, on a cluster

Keys: 1-7 or Tab choose a view, s sorts by the next column, r reverses, / filters, Enter shows the \
details of a row, Esc goes back, Space pauses, ? lists all keys, q quits.

Examples:
  telpher top                            watch a node
  telpher top quotas --interval 500ms --context prod
  telpher top --once                     print every view once
  telpher top mailboxes --once --json | jq '.mailboxes[] | select(.dead > 0)'

Rates are the change between two samples, so --once takes as long as the interval. Without a \
terminal, the command prints once.";

/// Show what a node does now: agents, topics, mailboxes, quotas
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// First view; with --once, the only one
    #[arg(value_parser = view, value_name = "VIEW")]
    view: Option<View>,

    /// Time between two samples, from 250ms to 60s
    #[arg(short, long, value_name = "DURATION", default_value = "2s", value_parser = interval)]
    interval: Duration,

    /// Print the tables once and end
    #[arg(long)]
    once: bool,

    #[command(flatten)]
    node: NodeArgs,
}

fn view(name: &str) -> Result<View, String> {
    View::named(name).ok_or_else(|| {
        let names = View::ALL.map(View::name);
        format!("the views are {}", names.join(", "))
    })
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    match INTERVALS.contains(&interval) {
        true => Ok(interval),
        false => Err("an interval from 250ms to 60s is expected".to_owned()),
    }
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let agents = OwnAgents {
        system: SYSTEM_AGENT,
        http: HTTP_AGENT,
    };
    let is_dumb = environment.get("TERM").is_none_or(|term| term == "dumb");
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let once = args.once || args.node.format.json || is_dumb || !is_terminal;
    block_on(async {
        let endpoint = args.node.target.resolve(environment)?;
        let client = endpoint.connect().await?;
        if !once {
            let view = args.view.unwrap_or(View::Agents);
            return top::show(&client, agents, endpoint.url, view, args.interval).await;
        }
        let views = args.view.map_or(View::ALL.to_vec(), |view| vec![view]);
        let output = top::once(&client, agents, &views, args.interval).await?;
        output::print(args.node.format, &output.json, &output.text)
    })
}
