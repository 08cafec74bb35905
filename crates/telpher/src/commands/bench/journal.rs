//! `telpher bench journal`: durable appends.

mod kill;
mod restart;

use std::path::PathBuf;

use bench_storage::journal::{self, Filing, Matrix, Via};
use clap::ValueEnum;

use super::kill::KillArgs;
use super::outcome::{Outcome, Style};
use super::runs::ShortRuns;
use console::Failure;

const ABOUT: &str = "\
Durable appends: an append is acknowledged when it is on disk.

Comma-separated lists make a matrix of cases. Writers append within the journal's process, each waiting \
for its append, or connections append through a node's native listener with several appends in flight. \
One sync serves all waiting appends. With --peers the floors do the same work in the same run: the same \
number of writers on a file of zeros with group commit, and the same number of connections to an echo \
that syncs before it answers. A ratio to them is meaningful only if the median sync takes at most \
0.5 ms; otherwise the case is flagged slow-disk.

--kill-9-check does not measure: it kills a node repeatedly under load, and reads everything that was \
acknowledged back.

--restart measures starts: it writes many streams, and starts the journal with all records unfiled in \
the write-ahead log, and again with all of them filed.";

const EXAMPLES: &str = "\
Examples:
  telpher bench journal
      1 and 128 writers, records of 256 bytes, with and without filing, five runs of two seconds
  telpher bench journal --peers bench/peers/bin
      compared with the disk floor
  telpher bench journal --writers 128 --threads 128 --dir /var/lib --duration 5s
      a thread for each writer, on another disk
  telpher bench journal --via door --shape 1x128,16x8,128x1 --peers bench/peers/bin
      through a node, compared with the durable echo
  telpher bench journal --size 64,4096 --streams 1000000
      other record sizes, over many streams
  telpher bench journal --kill-9-check 20
      20 kills; fails if an acknowledged record is lost, duplicated or reordered
  telpher bench journal --restart --streams 1000000 --records 10 --size 16
      duration of a start, and memory per unused stream";

/// Measure durable appends
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
#[command(mut_arg("duration", |duration| duration.default_value("2s")))]
pub(crate) struct Args {
    /// Source of the appends
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "process"
    )]
    via: Vec<AppendPath>,

    /// For --via door: connections x appends in flight per connection
    #[arg(long, value_delimiter = ',', value_name = "CxF,...", default_value = "1x1,1x128,16x8,128x1",
        value_parser = parse_shape)]
    shape: Vec<(u32, u32)>,

    /// For --via process: number of concurrent writers
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,128",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    writers: Vec<u32>,

    /// Number of threads of the writers; numbers above that of the writers are skipped
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,128",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Vec<u32>,

    /// Bytes of a record
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "256",
        value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    size: Vec<u64>,

    /// Number of streams, appended to in turn
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    streams: u64,

    /// Filing of segments during the run
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "on,off"
    )]
    filing: Vec<FilingArg>,

    #[command(flatten)]
    runs: ShortRuns,

    /// Directory on the disk to measure; up to 1 GiB is written in it and removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    #[command(flatten)]
    kill: KillArgs,

    /// Write the streams and measure starts with them
    #[arg(long, conflicts_with = "kill_9_check")]
    restart: bool,

    /// Number of records in each stream, for --restart
    #[arg(long, value_name = "N", default_value_t = 10, requires = "restart",
        value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    records: u64,

    #[command(flatten, next_help_heading = "Results")]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AppendPath {
    /// Writers within the journal's process
    Process,
    /// Connections to a node
    Door,
}

/// Parses a shape: `16x8` is sixteen connections with eight appends in flight each.
fn parse_shape(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once('x').and_then(|(connections, in_flight)| {
        Some((connections.parse().ok()?, in_flight.parse().ok()?))
    });
    match numbers {
        Some(shape @ (1..=4096, 1..=4096)) => Ok(shape),
        _ => Err("write CONNECTIONSxINFLIGHT, like 16x8, each from 1 to 4096".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FilingArg {
    /// Small segments, which are filed during the run
    On,
    /// Large segments, of which none is filed during the run
    Off,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(kills) = args.kill.kills(&args.dir) {
        return kill::run(args, kills);
    }
    if args.restart {
        return restart::run(args);
    }
    let via = |through: &AppendPath| match through {
        AppendPath::Process => Via::Process,
        AppendPath::Door => Via::Door,
    };
    let filing = |filed: &FilingArg| match filed {
        FilingArg::On => Filing::On,
        FilingArg::Off => Filing::Off,
    };
    let matrix = Matrix {
        vias: args.via.iter().map(via).collect(),
        shapes: args.shape.clone(),
        writers: args.writers.clone(),
        threads: args.threads.clone(),
        sizes: args.size.clone(),
        streams: args.streams,
        filing: args.filing.iter().map(filing).collect(),
        window: args.runs.duration,
        repeats: args.runs.repeats,
        directory: args.dir.clone(),
    };
    args.outcome
        .of("journal", &[Style::Table], |surroundings, runner| {
            journal::run(surroundings, &matrix, runner)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_shape_is_parsed_as_two_numbers() {
        assert_eq!(parse_shape("16x8"), Ok((16, 8)));
        for text in ["16", "x8", "0x1", "1x0", "a x b", "1x5000"] {
            assert!(parse_shape(text).is_err(), "{text}");
        }
    }
}
