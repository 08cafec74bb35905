//! `telpher version`: prints the version and the build target.

use std::env::consts::{ARCH, OS};

use serde_json::json;

use console::Failure;
use console::output::{self, Format};

/// Whether this program was compiled with optimization. Without it, times say little about Telpher.
pub(crate) const IS_OPTIMIZED: bool = !cfg!(unoptimized);

/// Print the version and the build target
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else if IS_OPTIMIZED {
        "release"
    } else {
        "unoptimized"
    };
    let commit = option_env!("TELPHER_COMMIT");
    let value = json!({
        "version": version,
        "commit": commit,
        "arch": ARCH,
        "os": OS,
        "profile": profile,
    });
    let commit = commit.map_or(String::new(), |commit| format!(", {commit}"));
    let human = format!("telpher {version} ({ARCH}-{OS}, {profile}{commit})\n");
    output::print(args.format, &value, &human)
}
