//! `telpher version`.

use std::env::consts::{ARCH, OS};

use serde_json::json;

use crate::failure::Failure;
use crate::output::{self, Format};

/// The version, and what it was built for
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let value = json!({ "version": version, "arch": ARCH, "os": OS, "profile": profile });
    output::print(
        args.format,
        &value,
        &format!("telpher {version} ({ARCH}-{OS}, {profile})\n"),
    )
}
