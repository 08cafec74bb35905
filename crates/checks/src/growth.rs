//! `bench growth`: cost of a node by the number of items it holds, and by the length of its log.
//!
//! Every step of items starts a node of its own, creates the items, leaves them alone, reads the
//! memory, and then sends messages in a closed loop over all of them. The log grows on one data
//! directory, because each step would write the earlier ones again.
//!
//! Time and disk are bounded: a step that does not fit is left out, and so are the later ones of its
//! dimension.

mod deadline;
mod groups;
mod items;
mod load;
mod log;
mod plan;
mod step;

use bench::growth::{Curve, Dimension, Growth};
use bench::model::Environment;
use bench::workload::error::WorkloadError;
use bench::workload::surroundings::Surroundings;

use self::deadline::Deadline;
use self::items::ItemNode;
pub use self::plan::Plan;
use self::step::StepError;
use crate::idle_memory;

/// Measures all dimensions.
///
/// # Errors
/// When a node fails.
pub fn run(
    surroundings: &Surroundings,
    plan: &Plan,
    environment: Environment,
    mut progress: impl FnMut(&str),
) -> Result<Growth, WorkloadError> {
    let whole = Deadline::after(plan.limit);
    let empty = ItemNode::start(surroundings, plan)?;
    let mut growth = Growth {
        environment,
        empty_rss_bytes: idle_memory::rss_bytes(&empty.node)?,
        in_flight: load::IN_FLIGHT,
        curves: Vec::new(),
        log: Vec::new(),
        left_out: Vec::new(),
    };
    drop(empty);
    for &of in &plan.of {
        match of {
            Dimension::Log => log::measure(surroundings, plan, whole, &mut growth, &mut progress)?,
            of => measure_items(surroundings, plan, of, whole, &mut growth, &mut progress)?,
        }
    }
    Ok(growth)
}

fn measure_items(
    surroundings: &Surroundings,
    plan: &Plan,
    of: Dimension,
    whole: Deadline,
    growth: &mut Growth,
    progress: &mut impl FnMut(&str),
) -> Result<(), WorkloadError> {
    let mut points = Vec::new();
    let max = plan.items_max.unwrap_or_else(|| of.published_max());
    let mut left_out: Option<String> = None;
    for step in item_steps(max) {
        if let Some(reason) = &left_out {
            growth.leave_out(of, step, reason.as_str());
            continue;
        }
        progress(&format!("{}: {step}", of.name()));
        let deadline = whole.at_most(plan.step_limit);
        match items::measure(surroundings, plan, of, step, deadline) {
            Ok(point) => points.push(point),
            Err(StepError::LeftOut(reason)) => {
                growth.leave_out(of, step, reason);
                left_out = Some("the step before it was left out".to_owned());
            }
            Err(StepError::Failed(error)) => return Err(error),
        }
    }
    growth.curves.push(Curve { of, points });
    Ok(())
}

/// Returns 1, 10, 100, … up to `max`, and `max` itself.
fn item_steps(max: u64) -> Vec<u64> {
    let powers = std::iter::successors(Some(1u64), |step| step.checked_mul(10));
    let mut steps: Vec<_> = powers.take_while(|step| *step < max).collect();
    steps.push(max.max(1));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_steps_end_with_the_maximum() {
        assert_eq!(item_steps(1), [1]);
        assert_eq!(item_steps(1_000), [1, 10, 100, 1_000]);
        assert_eq!(item_steps(25), [1, 10, 25]);
    }
}
