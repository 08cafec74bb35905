//! `telpher bench rpc`.

use std::time::Duration;

use bench::workload::rpc::{self, Amount, Matrix, RpcMode, Transport, Via};
use clap::ValueEnum;

use super::outcome::{Outcome, Place, Style};
use crate::failure::Failure;
use crate::settings::parse_duration;

const ABOUT: &str = "\
Calls to an echo, directly or through a node, in every way there is to make them.

Lists, separated by commas, make a matrix. Caller and callee are processes with one thread each, but for \
inproc, where they share one. The modes of a repeat take turns. With --peers the same is done by the \
floor of the machine (raw blocking sockets, or what a system without any features would need) and by other \
systems, in the same run.";

const EXAMPLES: &str = "\
Examples:
  telpher bench rpc
      three modes, 10 in flight, 128 bytes, five runs of a second
  telpher bench rpc --requests 100
      the run of the UVRPC report: too short to mean much, and flagged so
  telpher bench rpc --concurrency 10,64,256,1000,10000 --mode callback
      deep windows
  telpher bench rpc --transport tcp,unix,inproc --mode serial,blocking
      what the transport costs
  telpher bench rpc --peers bench/peers/bin --placement same-cpu --concurrency 10,64,256
      beside the floor, ZeroMQ, tarpc and tonic, all on one CPU
  telpher bench rpc --via direct,node --size 16
      what a node costs";

/// Measure calls
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Ways of making calls
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "MODES",
        default_value = "serial,concurrent,callback"
    )]
    mode: Vec<Mode>,

    /// Calls in flight, in the modes that have several
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "10",
        value_parser = clap::value_parser!(u32).range(1..=16_000))]
    concurrency: Vec<u32>,

    /// Bytes of a body
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "128"
    )]
    size: Vec<u64>,

    /// Calls of a run; auto: as many as --duration holds
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = parse_requests)]
    requests: Requests,

    /// Length of a run
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    duration: Duration,

    /// Runs of each case
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,

    /// What is between caller and callee
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "direct"
    )]
    via: Vec<Between>,

    /// How they are connected
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "tcp"
    )]
    transport: Vec<Connected>,

    /// On which CPUs the processes run
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "unpinned"
    )]
    placement: Vec<Place>,

    #[command(flatten, next_help_heading = "Results")]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// One at a time, awaited
    Serial,
    /// One at a time on a blocking socket, without a runtime
    Blocking,
    /// A sliding window, replies in order
    Concurrent,
    /// A sliding window, a function for the replies
    Callback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Between {
    /// Nothing
    Direct,
    /// A node
    Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Connected {
    /// TCP on loopback
    Tcp,
    /// A Unix socket
    Unix,
    /// Memory: caller and callee in one process and thread
    Inproc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requests {
    Auto,
    Count(u64),
}

fn parse_requests(text: &str) -> Result<Requests, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Requests::Auto),
        (_, Ok(0)) | (_, Err(_)) => Err("neither `auto` nor a number from 1".to_owned()),
        (_, Ok(count)) => Ok(Requests::Count(count)),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let matrix = args.matrix();
    let styles = [Style::Table, Style::Uvrpc];
    args.outcome
        .of("rpc", &styles, |surroundings, environment, show| {
            rpc::run(surroundings, &matrix, environment, show)
        })
}

impl Args {
    fn matrix(&self) -> Matrix {
        let mode = |mode: &Mode| match mode {
            Mode::Serial => RpcMode::Serial,
            Mode::Blocking => RpcMode::Blocking,
            Mode::Concurrent => RpcMode::Concurrent,
            Mode::Callback => RpcMode::Callback,
        };
        let via = |via: &Between| match via {
            Between::Direct => Via::Direct,
            Between::Node => Via::Node,
        };
        let transport = |transport: &Connected| match transport {
            Connected::Tcp => Transport::Tcp,
            Connected::Unix => Transport::Unix,
            Connected::Inproc => Transport::Inproc,
        };
        Matrix {
            modes: self.mode.iter().map(mode).collect(),
            concurrency: self.concurrency.clone(),
            sizes: self.size.clone(),
            vias: self.via.iter().map(via).collect(),
            transports: self.transport.iter().map(transport).collect(),
            placements: self.placement.iter().map(|one| (*one).into()).collect(),
            amount: match self.requests {
                Requests::Auto => Amount::Window(self.duration),
                Requests::Count(calls) => Amount::Calls(calls),
            },
            repeats: self.repeats,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_a_number_or_as_many_as_fit() {
        assert_eq!(parse_requests("auto"), Ok(Requests::Auto));
        assert_eq!(parse_requests("100"), Ok(Requests::Count(100)));
        for text in ["0", "many", "-1", ""] {
            assert!(parse_requests(text).is_err(), "{text}");
        }
    }
}
