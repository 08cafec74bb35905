//! `cargo xtask fuzz`: coverage-guided fuzzing without a nightly toolchain.
//!
//! libFuzzer needs the compiler's coverage instrumentation, which a stable `rustc` offers as an
//! LLVM pass; only the sanitizers are missing. Findings are stored in `fuzz/artifacts`.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::step::{self, cargo};

const TARGETS: [&str; 10] = [
    "blocks",
    "frames",
    "heads",
    "parts",
    "chunks",
    "conversations",
    "kafka",
    "links",
    "batches",
    "slim",
];

/// Maximum input size in bytes; larger inputs find nothing that smaller ones do not.
const INPUT_SIZE_MAX: &str = "4096";

/// Code generation options of the stable compiler for the instrumentation that libFuzzer reads.
const INSTRUMENTATION: &str = "-Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares \
     --cfg fuzzing";

const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);

/// Builds the targets and runs each for some seconds.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let seconds = seconds(args)?;
    let host = host()?;
    // With an explicit target, build scripts and macros are not instrumented.
    let mut build = cargo(&["build", "--release", "--target", &host]);
    build.current_dir("fuzz").env("RUSTFLAGS", INSTRUMENTATION);
    step::run("build the fuzz targets", &mut build, BUILD_LIMIT)?;
    for target in TARGETS {
        let corpus = format!("corpus/{target}");
        for directory in [format!("fuzz/{corpus}"), "fuzz/artifacts".to_owned()] {
            std::fs::create_dir_all(&directory).with_context(|| directory.clone())?;
        }
        let mut fuzz = Command::new(format!("./target/{host}/release/{target}"));
        fuzz.current_dir("fuzz")
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={INPUT_SIZE_MAX}"))
            .arg(format!("-artifact_prefix=artifacts/{target}-"))
            .arg(&corpus);
        let limit = Duration::from_secs(seconds + 60);
        step::run(&format!("fuzz {target} for {seconds} s"), &mut fuzz, limit)?;
    }
    Ok(())
}

fn seconds(args: &[String]) -> Result<u64> {
    match args {
        [] => Ok(60),
        [flag, seconds] if flag == "--seconds" => seconds
            .parse()
            .with_context(|| format!("`{seconds}` seconds")),
        _ => bail!("usage: cargo xtask fuzz [--seconds N]"),
    }
}

/// Returns the toolchain's target triple.
fn host() -> Result<String> {
    let text = step::read(Command::new("rustc").args(["--version", "--verbose"]))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("`rustc --version --verbose` has no `host` line")
}
