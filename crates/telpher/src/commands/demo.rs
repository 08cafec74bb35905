//! `telpher demo`: a node and several agents that work together over real sockets for a few
//! seconds.

mod acts;
mod agents;
mod conversation;
mod sleeper;
mod stage;
mod work;

use console::output::{Format, Style};
use console::{Environment, Exit, Failure, Signals};
use serve::Embedded;

use super::target::block_on;
use stage::Stage;

const ABOUT: &str = "\
Starts a node in this process, on free loopback ports and with a temporary directory, and several \
agents that communicate through it over real sockets. Ends after a few seconds and removes its \
data. With --ui the node also serves the console, and the agents stay at work until Ctrl-C.";

/// Start a temporary node and show agents at work
#[derive(Debug, clap::Args)]
#[command(after_help = ABOUT)]
pub(crate) struct Args {
    /// Act as the agent that the demo kills, at the node with this address
    #[arg(long, value_name = "URL", hide = true)]
    sleeper: Option<String>,

    /// Serve the console, and keep the agents at work until Ctrl-C
    #[arg(long)]
    ui: bool,

    #[command(flatten)]
    format: Format,
}

const NEXT: &str = "
Try next:
  telpher demo --ui                                    see the agents in the console
  telpher serve --dev                                  run a node, and print commands to try
  telpher listen acme/demo/upper --exec 'tr a-z A-Z'   run an agent in one line of shell
  telpher conversation append tea-time 'two cups'      append a message to a conversation
  telpher bench rpc                                    measure this machine
  telpher help                                         list the commands
";

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    if let Some(url) = args.sleeper {
        return block_on(sleeper::run(&url, environment));
    }
    let style = Style::of_stdout(environment.get("NO_COLOR").is_some());
    let stage = Stage::new(args.format, style);
    block_on(async {
        let mut signals = Signals::listen()?;
        if args.ui {
            return show(stage, &mut signals).await;
        }
        tokio::select! {
            played = play(stage) => played,
            () = signals.next() => Err(Failure::new(Exit::Failed, "interrupted")),
        }
    })
}

/// Plays all scenes.
async fn play(stage: Stage) -> Result<(), Failure> {
    let mut node = Embedded::start().await?;
    let crew = begin(&stage, &node).await?;
    acts::killed_agent(&stage, &crew, &node).await?;
    acts::restarted_node(&stage, &crew, &mut node).await?;
    acts::still_there(&stage, &node).await?;
    conversation::still_there(&stage, &crew).await?;
    acts::how_fast(&stage, &crew).await?;
    drop((crew, node));
    stage.next_steps(NEXT)
}

/// Plays the scenes before the crash with a console, and keeps the agents at work until a signal.
async fn show(stage: Stage, signals: &mut Signals) -> Result<(), Failure> {
    let mut node = Embedded::start_with_console().await?;
    let playing = async {
        let mut crew = begin(&stage, &node).await?;
        work::work(&stage, &mut crew).await
    };
    let outcome = tokio::select! {
        played = playing => played,
        () = signals.next() => Ok(()),
    };
    // Its directory is removed when nothing writes to it.
    node.crash().await;
    outcome
}

/// Connects the agents, and plays the scenes that need one node and no crash.
async fn begin(stage: &Stage, node: &Embedded) -> Result<agents::Crew, Failure> {
    stage.title(&format!(
        "telpher {}: a node and its agents",
        env!("CARGO_PKG_VERSION")
    ))?;
    stage
        .remarks("node", &format!("listens on {}", node.tcp))
        .await?;
    stage
        .remarks("node", &format!("        and {}", node.unix))
        .await?;
    let mut crew = agents::Crew::start(node).await?;
    if let Some(console) = &node.console {
        let what = format!("open the console in a browser: {console}");
        stage.remarks("node", &what).await?;
    }
    acts::anycast(stage, &crew).await?;
    acts::typed_calls(stage, &crew).await?;
    acts::streaming(stage, &crew).await?;
    acts::multicast(stage, &mut crew).await?;
    acts::write(stage, &mut crew).await?;
    conversation::append_and_watch(stage, &crew).await?;
    acts::no_responder(stage, &crew).await?;
    Ok(crew)
}
