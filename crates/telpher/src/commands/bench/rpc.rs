//! `telpher bench rpc`: calls.

use bench::workload::transport::Transport;
use bench_messaging::rpc::{self, Amount, Matrix, RpcMode, Via};
use clap::ValueEnum;

use super::outcome::{Outcome, PlacementArg, Style};
use super::runs::ShortRuns;
use console::Failure;

const ABOUT: &str = "\
Calls to an echo responder, directly or through a node, in all call modes.

Comma-separated lists make a matrix of cases. Caller and callee are processes with one thread each; with \
inproc they share one. The modes of a repeat are interleaved. With --peers the floors (raw blocking \
sockets, or a minimal event loop) and other systems do the same work in the same run.";

const EXAMPLES: &str = "\
Examples:
  telpher bench rpc
      three modes, 10 calls in flight, 128 bytes, five runs of one second
  telpher bench rpc --requests 100
      run of the UVRPC report; flagged as too short
  telpher bench rpc --concurrency 10,64,256,1000,10000 --mode callback
      many calls in flight
  telpher bench rpc --transport tcp,unix,inproc --mode serial,blocking
      cost of the transport
  telpher bench rpc --peers bench/peers/bin --placement same-cpu --concurrency 10,64,256
      compared with the floor, ZeroMQ, tarpc and tonic, all on one CPU
  telpher bench rpc --via direct,node --size 16
      cost of a node";

/// Measure calls
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Call modes
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "MODES",
        default_value = "serial,concurrent,callback"
    )]
    mode: Vec<Mode>,

    /// Calls in flight, in the modes that allow several
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

    /// Number of calls of a run; auto: as many as fit into --duration
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = parse_requests)]
    requests: Requests,

    #[command(flatten)]
    runs: ShortRuns,

    /// Path between caller and callee
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "direct"
    )]
    via: Vec<CallPath>,

    /// Transport between them
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "tcp"
    )]
    transport: Vec<TransportArg>,

    /// CPUs of the processes
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "unpinned"
    )]
    placement: Vec<PlacementArg>,

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
    /// A sliding window, a callback for each reply
    Callback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CallPath {
    /// A direct connection
    Direct,
    /// Through a node
    Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TransportArg {
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
        (_, Ok(0)) | (_, Err(_)) => Err("write `auto` or a number from 1".to_owned()),
        (_, Ok(count)) => Ok(Requests::Count(count)),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let matrix = args.matrix();
    let styles = [Style::Table, Style::Uvrpc];
    args.outcome.of("rpc", &styles, |surroundings, runner| {
        rpc::run(surroundings, &matrix, runner)
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
        let via = |via: &CallPath| match via {
            CallPath::Direct => Via::Direct,
            CallPath::Node => Via::Node,
        };
        let transport = |transport: &TransportArg| match transport {
            TransportArg::Tcp => Transport::Tcp,
            TransportArg::Unix => Transport::Unix,
            TransportArg::Inproc => Transport::Inproc,
        };
        Matrix {
            modes: self.mode.iter().map(mode).collect(),
            concurrency: self.concurrency.clone(),
            sizes: self.size.clone(),
            vias: self.via.iter().map(via).collect(),
            transports: self.transport.iter().map(transport).collect(),
            placements: self.placement.iter().map(|one| (*one).into()).collect(),
            amount: match self.requests {
                Requests::Auto => Amount::Window(self.runs.duration),
                Requests::Count(calls) => Amount::Calls(calls),
            },
            repeats: self.runs.repeats,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_auto_or_a_positive_number() {
        assert_eq!(parse_requests("auto"), Ok(Requests::Auto));
        assert_eq!(parse_requests("100"), Ok(Requests::Count(100)));
        for text in ["0", "many", "-1", ""] {
            assert!(parse_requests(text).is_err(), "{text}");
        }
    }
}
