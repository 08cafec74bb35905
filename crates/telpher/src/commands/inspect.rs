//! `telpher inspect`: checks a data directory and describes its content.
//!
//! The command never writes. The `inspect` crate checks the files; `node` decodes the names of
//! streams.

mod explain;
mod json;
mod names;

use std::path::{Path, PathBuf};

use console::output::{self, Format};
use console::{Exit, Failure};
use inspect::{InspectError, Inspection, ReadOnlyDisk, Request};
use meter::clock::now_ns;
use serve::data_lock::{self, DirectoryUse};

use self::names::Names;

const EXAMPLES: &str = "\
Examples:
  telpher inspect telpher-data             check and describe the directory
  telpher inspect telpher-data --streams   list every stream
  telpher inspect backup --json            print JSON

DIR is a node's data directory, or the journal in it. Every page and every block is read and checked; \
nothing is changed. Each damage is reported with its file, its bytes, its positions in the write-ahead \
log, and the streams that have records there.

Exit status: 0 if the data is complete and undamaged, 1 if anything is damaged or missing.";

/// Time between two lines of progress.
const PROGRESS_NS: u64 = 500_000_000;

/// Check and describe the data directory of a stopped node
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Data directory, or its journal
    dir: PathBuf,

    /// Read the directory even if a node uses it; concurrent changes may look like damage
    #[arg(long)]
    force_read: bool,

    /// List all streams, not only the largest
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
        stream: Some(store::DIRECTORY),
        progress: &mut |done, total| progress.report(done, total),
    };
    let found = inspect::inspect(&ReadOnlyDisk::new(&journal), request).map_err(|error| {
        let hint = match error {
            InspectError::NoJournal => "name the data directory of a node that has run",
            InspectError::Newer(_) => "use the version that wrote it, or a later one",
            InspectError::Io(_) => {
                "the directory must be readable for this user; check the disk with `dmesg`"
            }
        };
        Failure::new(Exit::Failed, format!("{}: {error}", journal.display())).hint(hint)
    })?;
    let names = Names::of(&found);
    let human = explain::text(&journal, &found, &names, args.streams);
    output::print(args.format, &json::value(&journal, &found, &names), &human)?;
    check_damage(&args, &found)
}

fn check_damage(args: &Args, found: &Inspection) -> Result<(), Failure> {
    if found.is_whole() {
        return Ok(());
    }
    let places = found.damage.len();
    let message = format!("{} is damaged: {places} places", args.dir.display());
    let failure = Failure::new(Exit::Failed, message);
    Err(match args.force_read {
        true => failure
            .hint("a node may have changed files meanwhile: inspect again when it has stopped"),
        false => failure
            .hint("restore a backup, or copy the directory before you continue")
            .hint(
                "`telpher serve --journal-accept-loss` continues without the damaged part of the \
                 write-ahead log",
            ),
    })
}

/// Returns the journal of a data directory, or `dir` itself if it is a journal.
fn journal_in(dir: &Path) -> Result<PathBuf, Failure> {
    let inner = dir.join("journal");
    if inner.is_dir() {
        return Ok(inner);
    }
    if dir.is_dir() {
        return Ok(dir.to_owned());
    }
    let message = format!("{} is not a directory", dir.display());
    Err(Failure::new(Exit::NotFound, message).hint("name the data directory of a node"))
}

/// Locks the directory, so that no node starts while it is read. Fails if a node uses it, unless
/// `force` is set.
fn guard(dir: &Path, force: bool) -> Result<Option<data_lock::Guard>, Failure> {
    let data = match dir.join("journal").is_dir() {
        true => dir.to_owned(),
        false => dir.join(".."),
    };
    match data_lock::check(&data) {
        Ok(DirectoryUse::Free(guard)) => Ok(Some(guard)),
        Ok(DirectoryUse::Held { .. }) if force => Ok(None),
        Ok(DirectoryUse::Held { pid }) => {
            let holder = data_lock::holder(pid);
            let message = format!("{} is in use by {holder}", dir.display());
            Err(Failure::new(Exit::Unavailable, message)
                .hint("stop that node, or inspect a backup of it: `telpher backup`")
                .hint("--force-read reads it anyway; concurrent changes may look like damage"))
        }
        Err(error) => {
            let message = format!("cannot check the lock of {}: {error}", dir.display());
            Err(Failure::new(Exit::Failed, message)
                .hint("the directory must be readable for this user"))
        }
    }
}

/// Prints progress to the standard error if the check takes long.
#[derive(Default)]
struct Progress {
    printed_ns: Option<u64>,
}

impl Progress {
    fn report(&mut self, done: u64, total: u64) {
        let now_ns = now_ns();
        let printed_ns = *self.printed_ns.get_or_insert(now_ns);
        if now_ns - printed_ns >= PROGRESS_NS {
            self.printed_ns = Some(now_ns);
            let percent = 100 * done.min(total) / total.max(1);
            output::note(&format!(
                "read {} MiB of {} ({percent} %)",
                done >> 20,
                total >> 20
            ));
        }
    }
}
