//! `telpher stream`: deletes records of raw streams.

use console::{Environment, Failure, output};
use serde_json::Value;
use serve::Trim;

use super::agents::{ask, text};
use super::stream::stream_name;
use super::target::{NodeArgs, block_on};

const EXAMPLES: &str = "\
Examples:
  telpher stream trim acme/demo/log --before 1000
                                       delete the records before offset 1000
  telpher stream delete acme/demo/log  delete every record

Offsets are never used twice: an append to a deleted stream gets the next offset.
The options `stream.retention` and `stream.retention_size` of a node delete records by age and size.";

/// Delete records of streams
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Delete the records of a stream before an offset
    Trim(TrimArgs),
    /// Delete every record of a stream
    Delete(DeleteArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct TrimArgs {
    /// Name of the stream: org/namespace/x, or x
    stream: String,

    /// First offset that is kept
    #[arg(long, value_name = "OFFSET")]
    before: u64,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// Name of the stream: org/namespace/x, or x
    stream: String,

    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    let (method, stream, before, format, target) = match command {
        Command::Trim(args) => {
            let before = Some(args.before);
            (
                "trim_stream",
                args.stream,
                before,
                args.node.format,
                args.node.target,
            )
        }
        Command::Delete(args) => (
            "delete_stream",
            args.stream,
            None,
            args.node.format,
            args.node.target,
        ),
    };
    let trim = Trim {
        name: stream_name(&stream)?.base().to_owned(),
        before,
    };
    block_on(async {
        let client = target.connect(environment).await?;
        let value: Value = ask(&client, format, method, &trim).await?;
        let (start, next) = (text(&value["start"]), text(&value["next"]));
        let human = format!("{} starts at {start} and ends at {next}\n", trim.name);
        output::print(format, &value, &human)
    })
}
