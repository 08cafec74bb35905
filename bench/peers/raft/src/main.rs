//! openraft over a toy log on three processes: what an adapter costs beside the quorum floor.
//!
//! `serve` is a node that leads, and starts two that follow it. It speaks the frames of the floors,
//! so `floors quorum load` is its client. Nothing here is meant to survive a restart: what is
//! measured is the way of a message through consensus, and that way is complete.

mod append;
mod door;
mod group;
mod link;
mod listener;
mod machine;
mod network;
mod node;
mod pipe;
mod store;
mod types;
mod wire;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use contract::{Failure, Flags, Outcome};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
raft-floor serve --listen ADDR --dir D [--file-mib M] [--groups N] [--blocks N]
                 [--hold-ms MS] [--counts FILE] [--cpu N]
The load is that of `floors quorum load`.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "raft-floor: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(arguments: &[String]) -> Outcome<()> {
    let (word, rest) = match arguments.split_first() {
        Some((word, rest)) => (word.as_str(), rest),
        None => ("", arguments),
    };
    match word {
        "serve" => node::serve(Flags::parse(rest.iter().cloned())?),
        "follow" => node::follow(Flags::parse(rest.iter().cloned())?),
        _ => Err(Failure::usage(
            format!("no such command: {word:?}"),
            format!("one of these\n{USAGE}"),
        )),
    }
}
