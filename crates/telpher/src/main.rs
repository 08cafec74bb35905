//! `telpher`: the node, its tools and its one-shot clients in one binary.
//!
//! Parses the command line, runs one command and turns its failure into words and an exit status.
//! What a command does lives in the libraries.

mod cli;
mod commands;
mod data_lock;
mod failure;
mod output;
mod serve;
mod settings;
mod utc;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse_args();
    let environment = settings::Environment::read();
    match cli.run(&environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let style = output::Style::of_stderr(environment.get("NO_COLOR").is_some());
            output::tell(&failure, style);
            ExitCode::from(failure.exit as u8)
        }
    }
}
