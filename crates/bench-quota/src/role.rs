//! Role of a load process.

use bench::workload::role::Failure;

use super::spec::{LoadSpec, TakeClient};
use super::{load, native};

/// Plays the role of a load.
///
/// # Errors
/// When the server cannot be reached, stops answering, or sends an invalid answer.
pub fn play(spec: &LoadSpec) -> Result<(), Failure> {
    match spec.client {
        TakeClient::Written(dialect) => load::play(spec, dialect),
        TakeClient::Native { batch, costs } => native::play(spec, batch, costs),
    }
}
