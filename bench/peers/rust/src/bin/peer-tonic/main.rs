//! tonic: a unary echo and, with `--rpc bidi`, an echo on one bidirectional stream.
//!
//! One HTTP/2 connection, no TLS, no protobuf. The flow-control windows and the limits on streams
//! are raised above every window of requests that is measured.

mod client;
mod codec;
mod server;

use std::process::ExitCode;

use contract::{Failure, Flags, Load, Mode, Outcome, Report, limit};
use peers::{run, runtime};

const UNARY: &str = "/bench.Echo/Unary";
const BIDI: &str = "/bench.Echo/Bidi";
/// Bytes of flow-control window, for a stream and for the connection.
const WINDOW_SIZE: u32 = 16 << 20;
/// Streams on one connection.
const STREAMS_MAX: u32 = 1 << 17;
/// Bytes of one body.
const BODY_SIZE_MAX: usize = 64 << 20;

const NOTES: &str = "tonic without TLS or protobuf, one HTTP/2 connection per connection, \
                     TCP_NODELAY, tokio current_thread on both sides, tracing compiled out, \
                     mimalloc";

fn main() -> ExitCode {
    run("peer-tonic", server::serve, load)
}

fn load(mut flags: Flags) -> Outcome<()> {
    let rpc = flags
        .take::<String>("rpc")?
        .unwrap_or_else(|| "unary".into());
    let load = Load::take(&mut flags)?;
    flags.finish()?;
    load.refuse(Mode::Publish, "tonic answers every call")?;
    limit(load.patience(), Vec::new());
    let runtime = runtime()?;
    let (program, tally, how) = match rpc.as_str() {
        "unary" => (
            "peer-tonic",
            runtime.block_on(client::unary(&load))?,
            "a unary call per request; serial and concurrent: futures in one task; callback: a \
             task per call in flight, as tonic has no callbacks",
        ),
        "bidi" => (
            "peer-tonic-bidi",
            runtime.block_on(client::bidi(&load))?,
            "a message on one bidirectional stream per request; the three modes are the same",
        ),
        _ => {
            return Err(Failure::usage(
                format!("--rpc cannot be {rpc:?}"),
                "take unary (the default) or bidi",
            ));
        }
    };
    Report::of(program, &load, &tally, &format!("{NOTES}; {how}")).print()
}
