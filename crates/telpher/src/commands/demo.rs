//! `telpher demo`: a node and a handful of agents that work together, over real sockets, in a few
//! seconds.

mod acts;
mod agents;
mod conversation;
mod sleeper;
mod stage;

use model::Name;

use super::target::{agent_name, block_on};
use crate::failure::{Exit, Failure};
use crate::output::{Format, Style};
use crate::serve::{Embedded, Signals};
use crate::settings::Environment;
use stage::Stage;

const ABOUT: &str = "\
Starts a node in this process, on free loopback ports and a temporary directory, and a handful of \
agents that talk through it over real sockets. Ends by itself after a few seconds and leaves nothing \
behind.";

/// Watch agents talk: starts a node, lets them work, ends
#[derive(Debug, clap::Args)]
#[command(after_help = ABOUT)]
pub(crate) struct Args {
    /// Be the agent that the demo kills, at the node of this address
    #[arg(long, value_name = "URL", hide = true)]
    sleeper: Option<String>,

    #[command(flatten)]
    format: Format,
}

const NEXT: &str = "
Try next:
  telpher serve --dev                                  a node that stays, and three commands to paste
  telpher listen acme/demo/upper --exec 'tr a-z A-Z'   an agent in one line of shell
  telpher conversation append tea-time 'two cups'      a message that stays, in a conversation
  telpher bench rpc                                    how fast this machine does it
  telpher help                                         the rest
";

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    if let Some(url) = args.sleeper {
        return block_on(sleeper::run(&url, environment));
    }
    let style = Style::of_stdout(environment.get("NO_COLOR").is_some());
    block_on(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            played = play(Stage::new(args.format, style)) => played,
            () = signals.next() => Err(Failure::new(Exit::Failed, "interrupted")),
        }
    })
}

async fn play(stage: Stage) -> Result<(), Failure> {
    let mut node = Embedded::start().await?;
    stage.title(&format!(
        "telpher {}: a node, agents, and what they say",
        env!("CARGO_PKG_VERSION")
    ))?;
    stage
        .remarks("node", &format!("listens on {}", node.tcp))
        .await?;
    stage
        .remarks("node", &format!("        and {}", node.unix))
        .await?;
    let mut crew = agents::Crew::start(&node).await?;
    acts::anycast(&stage, &crew).await?;
    acts::typed_calls(&stage, &crew).await?;
    acts::streaming(&stage, &crew).await?;
    acts::multicast(&stage, &mut crew).await?;
    acts::write(&stage, &mut crew).await?;
    conversation::held(&stage, &crew).await?;
    acts::nobody_there(&stage, &crew).await?;
    acts::killed_agent(&stage, &crew, &node).await?;
    acts::restarted_node(&stage, &crew, &mut node).await?;
    acts::still_there(&stage, &node).await?;
    conversation::still_there(&stage, &crew).await?;
    acts::how_fast(&stage, &crew).await?;
    drop((crew, node));
    stage.next_steps(NEXT)
}

/// The names under which everybody here goes.
fn desk(agent: &str) -> Result<Name, Failure> {
    agent_name(&format!("acme/desk/{agent}"))
}

/// Something did not go as it must.
fn broken(what: impl std::fmt::Display) -> Failure {
    let what = what.to_string();
    let what = what.lines().next().unwrap_or_default();
    Failure::new(Exit::Failed, format!("the demo failed: {what}"))
        .hint("this is a defect: please report it with the lines above")
}
