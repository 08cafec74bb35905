//! Head of the report: machine, placement, command and parameters.

use super::{label, series};
use crate::format::{ABSENT, thousands};
use crate::model::{CaseResult, Metric, Results};

pub(super) fn configuration(results: &Results) -> String {
    let cases: Vec<_> = series(results)
        .into_iter()
        .flat_map(|(_, cases)| cases)
        .collect();
    let list = |value: &dyn Fn(&CaseResult) -> String| {
        let mut values: Vec<String> = Vec::new();
        for case in &cases {
            let value = value(case);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.join(", ")
    };
    let environment = &results.environment;
    let absent = || ABSENT.to_owned();
    let mut text = String::from("## Test Configuration\n\n");
    let kernel = environment.kernel.clone().unwrap_or_else(absent);
    text += &format!("- **Platform**: Linux {kernel}\n");
    let cpu = environment.cpu_model.clone().unwrap_or_else(absent);
    let cpus = environment
        .cpu_count
        .map_or_else(absent, |count| count.to_string());
    text += &format!("- **CPU**: {cpu}, {cpus} CPUs\n");
    text += &format!(
        "- **Placement**: {}\n",
        environment.placement.clone().unwrap_or_else(absent)
    );
    text += &format!("- **Date**: {} UTC\n", results.generated);
    text += &format!("- **Test Tool**: `{}`\n", environment.command);
    text += "- **Test Parameters**:\n";
    text += &format!("  - Request Count: {}\n", list(&requests));
    let depth = |case: &CaseResult| {
        case.case
            .in_flight
            .map_or_else(absent, |depth| depth.to_string())
    };
    text += &format!("  - Concurrency: {}\n", list(&depth));
    text += &format!(
        "  - Payload Size: {} bytes\n",
        list(&|case| case.case.size.to_string())
    );
    if let Some(server) = &results.setup.server {
        text += &format!("  - Server Address: {server}\n");
    }
    for (name, value) in &results.setup.notes {
        text += &format!("  - {name}: {value}\n");
    }
    text + "\n"
}

/// Completed calls of a run: one number if all runs agree, otherwise the smallest and the largest.
fn requests(result: &CaseResult) -> String {
    let Some(counts) = result.summary.get(Metric::SenderMessages) else {
        return ABSENT.to_owned();
    };
    if counts.min == counts.max {
        return thousands(counts.min, 0);
    }
    format!(
        "{} to {} ({})",
        thousands(counts.min, 0),
        thousands(counts.max, 0),
        label(result)
    )
}
