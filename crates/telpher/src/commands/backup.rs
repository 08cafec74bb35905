//! `telpher backup`: a backup of a running node.

use std::path::PathBuf;
use std::time::Duration;

use console::{Environment, Exit, Failure, output};
use serde_json::Value;
use serve::Backup;

use super::agents::ask_within;
use super::target::{NodeArgs, block_on};

const EXAMPLES: &str = "\
Examples:
  telpher backup /backups/monday
  telpher inspect /backups/monday               check the backup
  telpher serve --data /backups/monday          start a node on it

The node writes the backup on its own machine. It contains everything that was acknowledged before \
the command. On the same file system immutable files are hard-linked, so the backup takes little \
space at first; copy it to another disk to survive the loss of the disk. If tokens are required, \
an administrator's token is needed.";

/// Deadline of a backup. Sealing, filing and copying take long with much data.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Make a consistent backup of a running node
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory on the node's machine; it must not exist
    dir: PathBuf,

    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let path = std::path::absolute(&args.dir).map_err(|error| {
        let message = format!("{}: {error}", args.dir.display());
        Failure::new(Exit::Usage, message).hint("name a directory, like /backups/monday")
    })?;
    let endpoint = args.node.target.resolve(environment)?;
    let question = Backup {
        path,
        token: endpoint.token.clone().unwrap_or_default(),
    };
    block_on(async {
        let client = endpoint.connect().await?;
        let asked = ask_within(&client, args.node.format, "backup", &question, LIMIT).await;
        let value = asked.map_err(|failure| match failure.exit {
            Exit::Usage => failure.hint(
                "name a new directory below one that exists on the node's machine: \
                 telpher backup /backups/monday",
            ),
            _ => failure,
        })?;
        output::print(args.node.format, &value, &text(&value))
    })
}

fn text(value: &Value) -> String {
    let count = |key: &str| value[key].as_u64().unwrap_or(0);
    format!(
        "backup complete in {}: {} data files, {} bytes ({} hard-linked, {} copied)\n",
        value["path"].as_str().unwrap_or_default(),
        count("linked") + count("copied"),
        count("bytes"),
        count("linked"),
        count("copied"),
    )
}
