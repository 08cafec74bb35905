//! The suite's capacity tables.

use crate::format::{ABSENT, fixed, interval};
use crate::model::{CountedBy, Metric, SweepResult, SweepStep};
use crate::report::Table;

/// Renders one row for each sweep, in separate tables for sink-backed and sender-counted modes.
pub(super) fn summary(sweeps: &[SweepResult]) -> String {
    let mut text = String::from(
        "## Adaptive Capacity Sweep Summary\n\nEach row is a separate fixed `(target, mode, clients, \
         payload)` case. `Best Offered Rate` is the offered rate of all clients together. Sink-backed \
         modes report the throughput observed at the sink, the others what the sender completed.\n\n",
    );
    let by = |counted_by| {
        sweeps
            .iter()
            .filter(move |one| one.case.mode.counted_by == counted_by)
    };
    for (title, counted_by) in [
        ("Sink-Backed Modes", CountedBy::Sink),
        ("Sender-Counted Modes", CountedBy::Sender),
    ] {
        if by(counted_by).next().is_some() {
            let rows = overview(by(counted_by), counted_by == CountedBy::Sink);
            text += &format!("### {title}\n\n{}\n", rows.markdown());
        }
    }
    text
}

fn overview<'a>(sweeps: impl Iterator<Item = &'a SweepResult>, sink: bool) -> Table {
    let observed = if sink {
        "Best Observed Node Throughput"
    } else {
        "Best Sender Write Throughput"
    };
    let mut heads = vec![
        "Mode",
        "Clients",
        "Payload",
        "Best Offered Rate",
        "Best Repeats",
        "Capacity Offered Interval",
        observed,
        if sink {
            "Observed 95% CI"
        } else {
            "Throughput 95% CI"
        },
    ];
    if sink {
        heads.extend(["Best Sender Completed Throughput", "Sender 95% CI"]);
    }
    heads.extend([
        "Node CPU %",
        "Node CPU 95% CI",
        "Total CPU %",
        "Total CPU 95% CI",
        "Steps",
        "Stop Reason",
    ]);
    let mut table = Table::new(heads, 0);
    for sweep in sweeps {
        let (best, found) = (sweep.best(), sweep.outcome.as_ref());
        let absent = || ABSENT.to_owned();
        let mut cells = vec![
            sweep.case.mode.name.to_string(),
            sweep.case.clients.to_string(),
            format!("{}B", sweep.case.size),
            found.map_or_else(absent, |found| found.best_rate.to_string()),
            best.map_or_else(absent, |best| best.runs.len().to_string()),
            found.map_or_else(absent, |found| {
                let upper = found
                    .rate_upper
                    .map_or_else(absent, |upper| upper.to_string());
                format!("[{}, {upper}]", found.rate_lower)
            }),
        ];
        let sender: &[Metric] = if sink { &[Metric::SenderRate] } else { &[] };
        let metrics = [Metric::ObservedRate].iter().chain(sender);
        for metric in metrics.chain(&[Metric::NodeCpu, Metric::TotalCpu]) {
            cells.extend(mean_interval(best, *metric));
        }
        cells.push(sweep.steps.len().to_string());
        cells.push(found.map_or_else(absent, |found| found.stop_reason.clone()));
        table.row(cells.into_iter().map(Some));
    }
    table
}

/// Renders every step of every sweep.
pub(super) fn technical(sweeps: &[SweepResult]) -> String {
    let mut text = String::from(
        "## Adaptive Capacity Sweep\n\nThe coarse phase multiplies the offered rate until the observed \
         throughput no longer improves by the threshold for the configured number of consecutive \
         steps. The refine phase halves the gap between the last rate that improved and the last that \
         did not. A step improves when it observes more than the best step before it by more than the \
         threshold.\n\n",
    );
    for sweep in sweeps {
        let (case, options) = (&sweep.case, &sweep.options);
        let parameters = format!("Clients={} Payload={}B", case.clients, case.size);
        text += &format!("### {} {} {parameters}\n\n", case.target, case.mode.title());
        text += &format!("- Start rate: `{}` msg/sec\n", options.start_rate);
        let rate_max = options
            .rate_max
            .map_or("unbounded".to_owned(), |rate| rate.to_string());
        text += &format!("- Max rate: `{rate_max}`\n");
        text += &format!("- Growth factor: `{:.2}`\n", options.growth);
        text += &format!(
            "- Plateau threshold: `{:.2}%`\n",
            100.0 * options.plateau_threshold
        );
        text += &format!("- Plateau steps: `{}`\n", options.plateau_steps);
        text += &format!("- Max steps: `{}`\n", options.steps_max);
        text += &format!("- Refinement steps: `{}`\n", options.refinement_steps);
        text += &format!("- Minimum rate delta: `{}`\n", options.rate_delta_min);
        text += &format!("- Repeats per sweep step: `{}`\n\n", options.repeats);
        text += &format!("{}\n", steps(&sweep.steps).markdown());
    }
    text
}

fn steps(steps: &[SweepStep]) -> Table {
    let heads = [
        "Step",
        "Phase",
        "Offered Aggregate Rate",
        "Repeats",
        "Sender Mean msg/sec",
        "Sender 95% CI",
        "Observed",
        "Observed 95% CI",
        "Observed Variance",
        "Observed Gain %",
        "Improved",
        "Node CPU %",
        "Node CPU 95% CI",
        "Total CPU %",
        "Total CPU 95% CI",
        "Errors",
    ];
    let mut table = Table::new(heads, 0);
    for step in steps {
        let observed = step.summary.get(Metric::ObservedRate);
        let mut cells = vec![
            step.step.to_string(),
            step.phase.name().to_owned(),
            step.rate.to_string(),
            step.runs.len().to_string(),
        ];
        cells.extend(mean_interval(Some(step), Metric::SenderRate));
        cells.extend(mean_interval(Some(step), Metric::ObservedRate));
        cells.push(fixed(observed.and_then(|one| one.variance)));
        cells.push(fixed(step.gain_percent));
        cells.push(step.improved.to_string());
        cells.extend(mean_interval(Some(step), Metric::NodeCpu));
        cells.extend(mean_interval(Some(step), Metric::TotalCpu));
        cells.push(step.error_count().to_string());
        table.row(cells.into_iter().map(Some));
    }
    table
}

fn mean_interval(step: Option<&SweepStep>, metric: Metric) -> [String; 2] {
    let described = step.and_then(|step| step.summary.get(metric));
    [
        fixed(described.map(|one| one.mean)),
        interval(described.and_then(|one| one.interval)),
    ]
}
