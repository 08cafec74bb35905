//! `telpher backup`: a copy of a node's data while it serves.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::agents::ask_within;
use super::target::{Target, block_on};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::serve::Backup;
use crate::settings::Environment;

const EXAMPLES: &str = "\
Examples:
  telpher backup /backups/monday
  telpher inspect /backups/monday               check it
  telpher serve --data /backups/monday          start on it

The node makes it, on its own machine. Everything that was acknowledged before the command is in it. What \
never changes is shared by hard links where both are on one file system, so it costs little room at first; \
copy it elsewhere to survive the disk. Where tokens are required, an administrator's is.";

/// Sealing, filing and copying take a while when there is much.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Make a consistent copy of a node's data while it serves
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A directory on the node's machine that is not there yet
    dir: PathBuf,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let path = std::path::absolute(&args.dir).map_err(|error| {
        let message = format!("{}: {error}", args.dir.display());
        Failure::new(Exit::Usage, message).hint("name a directory, like /backups/monday")
    })?;
    let question = Backup {
        path,
        token: args.target.token(environment).unwrap_or_default(),
    };
    block_on(async {
        let client = args.target.connect(environment).await?;
        let asked = ask_within(&client, args.format, "backup", &question, LIMIT).await;
        let value = asked.map_err(|failure| match failure.exit {
            Exit::Usage => failure.hint(
                "name a new directory below one that exists on the node's machine: \
                 telpher backup /backups/monday",
            ),
            _ => failure,
        })?;
        output::print(args.format, &value, &text(&value))
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
