//! Disk floor: the same number of writers, one file of zeros, one sync shared by all waiting
//! writers.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::measurement::{Measurement, Storage};
use crate::model::Case;
use crate::process::{Role, RoleUsage, Usage};
use crate::workload::child::Pin;
use crate::workload::error::WorkloadError;
use crate::workload::peer::{LoadReport, Program};
use crate::workload::surroundings::PATIENCE;

/// Further fields in the floor's report.
#[derive(Deserialize)]
struct SyncReport {
    syncs: f64,
    sync_p50_ns: f64,
}

/// Runs the floor once with the writers and threads of one of our cases.
///
/// # Errors
/// When the floor does not start, or prints no report.
pub fn measure(
    program: &Program,
    case: &Case,
    directory: &Path,
    window: Duration,
) -> Result<Measurement, WorkloadError> {
    let directory = directory.display().to_string();
    let [writers, threads, size] = [case.clients.into(), case.number("threads"), case.size]
        .map(|number: u64| number.to_string());
    let seconds = window.as_secs_f64().to_string();
    let arguments = [
        "--dir",
        &directory,
        "--writers",
        &writers,
        "--threads",
        &threads,
        "--size",
        &size,
        "--seconds",
        &seconds,
    ];
    let mut floor = program.start(&arguments, Pin::Nowhere)?;
    let line = floor.line_within(window + PATIENCE)?;
    let report: LoadReport = floor.parse(line.clone())?;
    let syncs: SyncReport = floor.parse(line)?;
    let measured = report.measurement();
    let storage = Storage {
        syncs: syncs.syncs as u64,
        blocks: None,
        written_bytes: None,
        payload_bytes: measured.completed * case.size,
        sync_p50_ns: Some(syncs.sync_p50_ns as u64),
    };
    // Writers and disk are one process, as in our case.
    let usage = RoleUsage {
        role: Role::Node,
        name: Role::Node.name().to_owned(),
        ..report.usage()
    };
    Ok(Measurement {
        storage: Some(storage),
        usage: Some(Usage {
            roles: vec![usage],
            host: None,
        }),
        ..measured
    })
}
