//! The command line and the runtime of a peer.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use contract::{Failure, Flags, Outcome};

/// Runs `serve` or `load` and turns the outcome into an exit code.
pub fn run(
    program: &str,
    serve: impl FnOnce(Flags) -> Outcome<()>,
    load: impl FnOnce(Flags) -> Outcome<()>,
) -> ExitCode {
    let mut arguments = env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let outcome = Flags::parse(arguments).and_then(|flags| match command.as_str() {
        "serve" => serve(flags),
        "load" => load(flags),
        _ => Err(Failure::usage(
            format!("no such command: {command:?}"),
            format!(
                "{program} serve --listen ADDR [--cpu N], or {program} load --connect ADDR --mode \
                 MODE (--seconds S | --requests N) [--in-flight N] [--size B] [--connections C] \
                 [--warmup-seconds W] [--cpu N]"
            ),
        )),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "{program}: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// A runtime that works on this thread alone.
pub fn runtime() -> Outcome<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::run(format!("no runtime: {error}"), "raise `ulimit -n`"))
}
