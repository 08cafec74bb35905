//! The floors: the least this machine needs to echo a frame, to sync a message, and to do both.
//!
//! A result of the benchmark is held against these programs. They share no code with the system
//! that is measured and do nothing but the work itself: no names, no deadlines, no credits.

mod client;
mod disk;
mod durable;
mod echo;
mod group;
mod http;
mod load;
mod poll;
mod quorum;
mod serve;
mod socket;
mod stream;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use contract::{Failure, Flags, Outcome};

const USAGE: &str = "\
floors echo serve --listen ADDR [--cpu N]
floors echo load --connect ADDR --mode MODE (--seconds S | --requests N) [--in-flight N] [--size B]
                 [--warmup-seconds W] [--connections C] [--threads T] [--cpu N]
floors durable-echo serve --listen ADDR --dir D [--file-mib M] [--threads 1|2] [--cpu N]
floors durable-echo load   (as echo load)
floors quorum serve --listen ADDR --dir D [--file-mib M] [--follower-threads 1|2] [--ahead N]
                    [--counts FILE] [--cpu N]
floors quorum load   (as echo load)
floors http serve --listen ADDR [--cpu N]
floors stream serve --listen ADDR [--cpu N]
floors stream load --connect ADDR --mode MODE --seconds S [--size B] [--warmup-seconds W] [--cpu N]
floors disk --dir D --seconds S [--writers N] [--threads T] [--size B] [--warmup-seconds W]
            [--file-mib M] [--cpu N]
ADDR is 127.0.0.1:PORT or unix:/path, MODE is serial, concurrent or callback.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "floors: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(arguments: &[String]) -> Outcome<()> {
    let words: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .take_while(|word| !word.starts_with('-'))
        .collect();
    let flags = || Flags::parse(arguments[words.len()..].iter().cloned());
    match words.as_slice() {
        ["echo", "serve"] => serve::run(echo::echo, flags()?),
        ["echo", "load"] => load::run("echo-floor", load::Threads::PerConnection, flags()?),
        ["durable-echo", "serve"] => durable::serve(flags()?),
        ["durable-echo", "load"] => load::run("durable-echo-floor", load::Threads::One, flags()?),
        ["quorum", "serve"] => quorum::serve(flags()?),
        ["quorum", "follow"] => quorum::follow(flags()?),
        ["quorum", "load"] => load::run("quorum-floor", load::Threads::One, flags()?),
        ["http", "serve"] => serve::run(http::answer, flags()?),
        ["stream", "serve"] => serve::run(stream::answer, flags()?),
        ["stream", "load"] => stream::load(flags()?),
        ["disk"] => disk::run(flags()?),
        _ => Err(Failure::usage(
            format!("no such command: {:?}", words.join(" ")),
            format!("one of these\n{USAGE}"),
        )),
    }
}
