//! `telpher`: the node, its tools and its one-shot clients in one binary.
//!
//! Parses the command line, runs one command, and turns its failure into a message and an exit
//! status. The work of the commands is done by the libraries.

mod cli;
mod commands;
mod contexts;
mod settings;

use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let environment = console::Environment::read();
    let outcome = cli::Cli::parse_from(&arguments).and_then(|cli| cli.run(&environment));
    let Err(failure) = outcome else {
        return ExitCode::SUCCESS;
    };
    let style = console::output::Style::of_stderr(environment.get("NO_COLOR").is_some());
    console::output::print_errors(&failure, style);
    if asks_for_json(&arguments) {
        console::output::print_failure(&failure);
    }
    ExitCode::from(failure.exit as u8)
}

/// True if the arguments contain `--json`. Reads the raw arguments, because after a usage error
/// there are no parsed ones.
fn asks_for_json(arguments: &[OsString]) -> bool {
    let options = arguments.iter().take_while(|it| *it != "--");
    options.into_iter().any(|it| it == "--json")
}
