//! Measures a repeat of a case with applications that count themselves: a sender that starts on `go`
//! and then reports, and a responder that counts arrivals.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::super::sink::final_count;
use super::nodes::TestedNode;
use bench::measurement::Measurement;
use bench::model::{Case, CountedBy};
use bench::process::{Role, Watch};
use bench::workload::child::Actor;
use bench::workload::error::WorkloadError;
use bench::workload::role::Ready;
use bench::workload::surroundings::PATIENCE;

/// Starts the sender, converts its report by `measurement`, and adds the receiver's count and the
/// usage.
pub(super) fn measure_run<R: DeserializeOwned>(
    node: &mut TestedNode,
    case: &Case,
    window: Duration,
    responder: &mut Actor,
    sender: &mut Actor,
    measurement: impl FnOnce(R) -> Measurement,
) -> Result<Measurement, WorkloadError> {
    let Ready { setup_ns, .. } = sender.json()?;
    let watch = Watch::start(&[
        (Role::Sender, sender.pid()),
        (Role::Node, node.pid()),
        (Role::Responder, responder.pid()),
    ])?;
    sender.write_line("go")?;
    let report = sender.json_while(window + PATIENCE, || {
        node.check_alive()?;
        responder.check_alive()
    })?;
    let measured = measurement(report);
    let sink = match case.mode.counted_by {
        CountedBy::Sink => Some(final_count(responder, measured.completed)?),
        CountedBy::Sender => None,
    };
    let usage = watch.stop();
    node.check_alive()?;
    Ok(Measurement {
        setup_ns: Some(setup_ns),
        sink,
        usage: Some(usage),
        ..measured
    })
}
