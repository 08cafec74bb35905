//! `telpher bench journal`.

mod kill;
mod restart;

use std::path::PathBuf;
use std::time::Duration;

use bench::workload::journal::{self, Filing, Matrix, Via};
use clap::ValueEnum;

use super::outcome::{Outcome, Style};
use crate::failure::Failure;
use crate::settings::parse_duration;

const ABOUT: &str = "\
Appends that are on disk when they are acknowledged.

Lists, separated by commas, make a matrix. Writers append within the journal's own process, each waiting \
for its append; or connections append through a node's native door, with several in flight. One sync serves \
all who wait. With --peers the floors do the same in the same run: as many writers on one file of zeros, one \
sync for all who wait and nothing else; as many connections to an echo that syncs before it answers. A ratio \
to them means something while the median sync takes at most 0.5 ms; else the case is flagged slow-disk.

With --kill-9-check nothing is measured: a node is killed over and over under load, and everything it \
acknowledged is read back.

With --restart nothing is appended against time: many streams are written, and the journal is started with \
all of them in the unfiled line and again with all of them filed.";

const EXAMPLES: &str = "\
Examples:
  telpher bench journal
      one writer and 128, of 256 bytes, with filing and without, five runs of two seconds
  telpher bench journal --peers bench/peers/bin
      beside the disk floor
  telpher bench journal --writers 128 --threads 128 --dir /var/lib --duration 5s
      a thread for each writer, on another disk
  telpher bench journal --via door --shape 1x128,16x8,128x1 --peers bench/peers/bin
      through a node, beside the durable echo
  telpher bench journal --size 64,4096 --streams 1000000
      other records, over many streams
  telpher bench journal --kill-9-check 20
      twenty kills; fails if anything that was acknowledged is lost, doubled or out of order
  telpher bench journal --restart --streams 1000000 --records 10 --size 16
      how long a start takes, and what a stream that nobody uses costs";

/// Measure durable appends
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Who appends
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "process"
    )]
    via: Vec<Through>,

    /// Connections, and appends that each has in flight, for --via door
    #[arg(long, value_delimiter = ',', value_name = "CxF,...", default_value = "1x1,1x128,16x8,128x1",
        value_parser = parse_shape)]
    shape: Vec<(u32, u32)>,

    /// Writers that wait at the same time, for --via process
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,128",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    writers: Vec<u32>,

    /// Threads that stand for them; a number above the writers makes no case
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,128",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Vec<u32>,

    /// Bytes of a record
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "256",
        value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    size: Vec<u64>,

    /// Streams that are appended to in turn
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    streams: u64,

    /// Whether segments are filed meanwhile
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "on,off"
    )]
    filing: Vec<Filed>,

    /// Length of a run
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    duration: Duration,

    /// Runs of each case
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,

    /// Directory on the disk to measure; up to 1 GiB is written in it and removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Kill a node so often under load, and read back everything that it acknowledged
    #[arg(long = "kill-9-check", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    kill_9_check: Option<u32>,

    /// What the moments of the kills follow from [default: another each time]
    #[arg(long, value_name = "N", requires = "kill_9_check")]
    seed: Option<u64>,

    /// Write the streams and measure what it takes to start with them
    #[arg(long, conflicts_with = "kill_9_check")]
    restart: bool,

    /// Records in each stream, for --restart
    #[arg(long, value_name = "N", default_value_t = 10, requires = "restart",
        value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    records: u64,

    #[command(flatten, next_help_heading = "Results")]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Through {
    /// Writers within the journal's process
    Process,
    /// Connections to a node
    Door,
}

/// `16x8`: sixteen connections with eight appends in flight each.
fn parse_shape(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once('x').and_then(|(connections, in_flight)| {
        Some((connections.parse().ok()?, in_flight.parse().ok()?))
    });
    match numbers {
        Some(shape @ (1..=4096, 1..=4096)) => Ok(shape),
        _ => Err("connections x in flight, like 16x8, each from 1 to 4096".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Filed {
    /// Small segments: some are filed all the time
    On,
    /// Segments so large that none is full before the run ends
    Off,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(kills) = args.kill_9_check {
        return kill::run(args, kills);
    }
    if args.restart {
        return restart::run(args);
    }
    let via = |through: &Through| match through {
        Through::Process => Via::Process,
        Through::Door => Via::Door,
    };
    let filing = |filed: &Filed| match filed {
        Filed::On => Filing::On,
        Filed::Off => Filing::Off,
    };
    let matrix = Matrix {
        vias: args.via.iter().map(via).collect(),
        shapes: args.shape.clone(),
        writers: args.writers.clone(),
        threads: args.threads.clone(),
        sizes: args.size.clone(),
        streams: args.streams,
        filing: args.filing.iter().map(filing).collect(),
        window: args.duration,
        repeats: args.repeats,
        directory: args.dir.clone(),
    };
    args.outcome.of(
        "journal",
        &[Style::Table],
        |surroundings, environment, show| journal::run(surroundings, &matrix, environment, show),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_two_numbers() {
        assert_eq!(parse_shape("16x8"), Ok((16, 8)));
        for text in ["16", "x8", "0x1", "1x0", "a x b", "1x5000"] {
            assert!(parse_shape(text).is_err(), "{text}");
        }
    }
}
