//! `telpher inspect`: whether a data directory is what was written, and what is in it.
//!
//! It looks and changes nothing. What it finds is the journal's; the names are the node's.

mod explain;
mod json;
mod names;

use std::path::{Path, PathBuf};

use bench::clock::now_ns;
use journal::inspect::{self, InspectError, Inspection, ReadOnlyDisk, Request};

use self::names::Names;
use crate::data_lock::{self, Use};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format};

const EXAMPLES: &str = "\
Examples:
  telpher inspect telpher-data             check everything, say what is there
  telpher inspect telpher-data --streams   with every stream
  telpher inspect backup --json            for programs

DIR is a node's data directory, or the journal in it. Every page and every block is read and checked; \
nothing is changed. What is damaged is named: the file, the bytes, the place in the line, and the streams \
that have records there.

Exit status: 0 if all of it is what was written, 1 if something is damaged or missing.";

/// How often progress is told.
const PROGRESS_NS: u64 = 500_000_000;

/// Check and explain a data directory that no node uses
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The directory
    dir: PathBuf,

    /// Read it even though a node uses it; what changes meanwhile may look damaged
    #[arg(long)]
    force_read: bool,

    /// List every stream, not only the largest
    #[arg(long)]
    streams: bool,

    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let journal = journal_in(&args.dir)?;
    let _guard = guard(&args.dir, args.force_read)?;
    let mut progress = Progress::default();
    let request = Request {
        kept: Some(node::DIRECTORY),
        progress: &mut |done, total| progress.tell(done, total),
    };
    let found = inspect::inspect(&ReadOnlyDisk::new(&journal), request).map_err(|error| {
        let hint = match error {
            InspectError::NoJournal => "name the data directory of a node that has run",
            InspectError::Newer(_) => "use the build that wrote it, or a later one",
            InspectError::Io(_) => {
                "it must be readable for this user; is the disk failing? `dmesg` knows"
            }
        };
        Failure::new(Exit::Failed, format!("{}: {error}", journal.display())).hint(hint)
    })?;
    let names = Names::of(&found);
    let human = explain::text(&journal, &found, &names, args.streams);
    output::print(args.format, &json::value(&journal, &found, &names), &human)?;
    judge(&args, &found)
}

fn judge(args: &Args, found: &Inspection) -> Result<(), Failure> {
    if found.is_whole() {
        return Ok(());
    }
    let places = found.damage.len();
    let message = format!("{} is damaged: {places} places", args.dir.display());
    let failure = Failure::new(Exit::Failed, message);
    Err(match args.force_read {
        true => {
            failure.hint("a node may have changed files meanwhile: look again when it has stopped")
        }
        false => failure
            .hint("restore a backup, or copy the directory aside before anything else")
            .hint(
                "`telpher serve --journal-accept-loss` goes on without what is damaged in the line",
            ),
    })
}

/// The journal of a data directory, or the directory itself if it is one.
fn journal_in(dir: &Path) -> Result<PathBuf, Failure> {
    let inner = dir.join("journal");
    if inner.is_dir() {
        return Ok(inner);
    }
    if dir.is_dir() {
        return Ok(dir.to_owned());
    }
    let message = format!("there is no directory {}", dir.display());
    Err(Failure::new(Exit::NotFound, message).hint("name the data directory of a node"))
}

/// Keeps nodes away while the directory is read; refused while one uses it.
fn guard(dir: &Path, force: bool) -> Result<Option<data_lock::Guard>, Failure> {
    let data = match dir.join("journal").is_dir() {
        true => dir.to_owned(),
        false => dir.join(".."),
    };
    match data_lock::look(&data) {
        Ok(Use::Free(guard)) => Ok(Some(guard)),
        Ok(Use::Held { .. }) if force => Ok(None),
        Ok(Use::Held { pid }) => {
            let holder = data_lock::holder(pid);
            let message = format!("{} is in use by {holder}", dir.display());
            Err(Failure::new(Exit::Unavailable, message)
                .hint("stop that node, or inspect a backup of it: `telpher backup`")
                .hint("--force-read looks all the same; what changes meanwhile may look damaged"))
        }
        Err(error) => {
            let message = format!("cannot look at the lock of {}: {error}", dir.display());
            Err(Failure::new(Exit::Failed, message).hint("it must be readable for this user"))
        }
    }
}

/// Says on the standard error how far it is, when it takes long.
#[derive(Default)]
struct Progress {
    told_ns: Option<u64>,
}

impl Progress {
    fn tell(&mut self, done: u64, total: u64) {
        let now_ns = now_ns();
        let told_ns = *self.told_ns.get_or_insert(now_ns);
        if now_ns - told_ns >= PROGRESS_NS {
            self.told_ns = Some(now_ns);
            let percent = 100 * done.min(total) / total.max(1);
            output::note(&format!(
                "read {} MiB of {} ({percent} %)",
                done >> 20,
                total >> 20
            ));
        }
    }
}
