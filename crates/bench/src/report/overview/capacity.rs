//! A row for each capacity sweep.

use super::Section;
use crate::format::{human, human_interval, thousands};
use crate::model::{Metric, SweepResult};
use crate::report::Table;

pub(super) fn capacity(sweeps: &[SweepResult]) -> Section {
    let heads = [
        "Target",
        "Case",
        "Best offered",
        "Between",
        "Throughput",
        "95 % CI",
        "Node CPU",
        "All CPU",
        "Node CPU/msg",
        "Steps",
    ];
    let mut table = Table::new(heads, 2);
    let mut notes = Vec::new();
    let per_second = |rate: u64| thousands(rate as f64, 0);
    for sweep in sweeps {
        let (best, found) = (sweep.best(), sweep.outcome.as_ref());
        let mean = |metric: Metric| Some(human(best?.summary.mean(metric)?, metric.unit()));
        let rate = Metric::ObservedRate;
        let interval = best.and_then(|best| best.summary.get(rate)?.interval);
        table.row([
            Some(sweep.case.target.clone()),
            Some(sweep.case.description_without(&["rate"])),
            found.map(|found| format!("{}/s", per_second(found.best_rate))),
            found.map(|found| match found.rate_upper {
                Some(upper) => {
                    format!("{} – {}/s", per_second(found.rate_lower), per_second(upper))
                }
                None => format!("from {}/s", per_second(found.rate_lower)),
            }),
            mean(rate),
            interval.map(|interval| human_interval(interval, rate.unit())),
            mean(Metric::NodeCpu),
            mean(Metric::TotalCpu),
            mean(Metric::NodeCpuPerMessage),
            Some(sweep.steps.len().to_string()),
        ]);
        let reason = found.map_or("nothing came through", |found| &found.stop_reason);
        notes.push(format!(
            "{}, {}: {reason}",
            sweep.case.target, sweep.case.mode.name
        ));
    }
    Section {
        heading: "capacity".to_owned(),
        table: table.without_empty_columns(),
        notes,
    }
}
