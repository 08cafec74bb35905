//! Role of a load process.

use bench::workload::role::Failure;

use super::spec::{LoadSpec, Work};
use super::{consume, end_to_end, produce};

/// Plays the role of the load.
///
/// # Errors
/// When the broker cannot be reached, stops answering, or sends an invalid answer.
pub fn play(spec: &LoadSpec) -> Result<(), Failure> {
    match &spec.work {
        Work::Produce(produce) => produce::play(spec, produce),
        Work::Consume => consume::play(spec),
        Work::EndToEnd { size, acks } => end_to_end::play(spec, *size, *acks),
    }
}
