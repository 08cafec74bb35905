//! Where benchmarks write, and how their results are stored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::step;

/// Programs to compare with.
pub(super) const PEERS: &str = "bench/peers/bin";
/// Results of all runs.
pub(super) const OUT: &str = "target/bench-out";
/// Fills free memory before each run. It is a hole, and takes no space on the disk.
const MEMORY: &str = "target/fills-memory";
/// Committed results.
pub(super) const RESULTS: &str = "bench/results";

/// Longest time that a benchmark may take.
const RUN_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Compresses a file with gzip.
pub(super) fn compress(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut encoder = GzEncoder::new(fs::File::create(to)?, Compression::best());
    std::io::copy(&mut fs::File::open(from)?, &mut encoder)?;
    encoder.finish()?;
    Ok(())
}

/// Returns the text with a capital letter first.
pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// Returns a command of the release.
pub(super) fn telpher(args: &[&str]) -> Command {
    let mut command = Command::new("target/release/telpher");
    command.args(args);
    command
}

/// Returns a benchmark of the release with arguments that are separated by blanks. Free memory is filled if its
/// programs write to a disk.
pub(super) fn benchmark(line: &str) -> Command {
    let mut command = telpher(&["bench"]);
    command.args(line.split_whitespace());
    if writes_files(line) {
        command.args(["--fill-memory", MEMORY]);
    }
    command
}

/// Returns whether the programs of a benchmark write to a disk. Others have no use for memory that is filled.
pub(super) fn writes_files(line: &str) -> bool {
    line.split_whitespace().any(|word| word == "--dir")
}

/// Runs a benchmark. Returns the directory that it made for its result.
pub(super) fn measure(name: &str, commit: &str, command: &mut Command) -> Result<PathBuf> {
    let out = Path::new(OUT).join(name);
    let earlier = entries(&out)?;
    command.args(["--commit", commit, "--out"]).arg(&out);
    step::run(name, command, RUN_LIMIT)?;
    let mut made = entries(&out)?;
    made.retain(|directory| !earlier.contains(directory));
    made.pop().context("the benchmark left no directory")
}

/// Lists the entries of a directory; empty if it does not exist.
pub(super) fn entries(parent: &Path) -> Result<Vec<PathBuf>> {
    if !parent.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(parent)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    Ok(paths.collect::<std::io::Result<_>>()?)
}
