//! A row for each ratio between two cases.

use crate::model::{Case, CaseComparison, Results};
use crate::report::Table;
use crate::report::common::ratio;

/// Returns the table, and a note of the parameters that all cases share.
pub(super) fn ratios(results: &Results) -> (Table, Option<String>) {
    let shared = shared(results);
    let words: Vec<_> = shared.iter().map(|(_, words)| words.as_str()).collect();
    let names: Vec<_> = shared.iter().map(|(name, _)| *name).collect();
    let heads = [
        "Of", "Subject", "Baseline", "Metric", "Verdict", "Ratio", "95 % CI", "df",
    ];
    let mut table = Table::new(heads, 5);
    for found in &results.comparisons {
        let CaseComparison {
            metric, comparison, ..
        } = found;
        let [of, subject, baseline] = comparison_names(results, found, &names);
        let [ratio, interval] = ratio(comparison);
        table.row([
            Some(of),
            Some(subject),
            Some(baseline),
            Some(metric.label().to_owned()),
            Some(found.verdict().to_owned()),
            ratio,
            interval,
            comparison.degrees.map(|degrees| format!("{degrees:.1}")),
        ]);
    }
    let note = (!words.is_empty()).then(|| format!("Common to all: {}.", words.join(" · ")));
    (table, note)
}

/// Returns the parameters that all cases share.
fn shared(results: &Results) -> Vec<(&str, String)> {
    let Some(first) = results.cases.first() else {
        return Vec::new();
    };
    let mut parts = first.case.parts();
    parts.retain(|part| {
        results
            .cases
            .iter()
            .all(|one| one.case.parts().contains(part))
    });
    parts
}

/// Describes a comparison: the parameters both cases share, then the subject, then the baseline.
fn comparison_names(results: &Results, found: &CaseComparison, shared: &[&str]) -> [String; 3] {
    let (Some(subject), Some(baseline)) =
        (results.case(&found.subject), results.case(&found.baseline))
    else {
        return [String::new(), found.subject.clone(), found.baseline.clone()];
    };
    let (subject, baseline) = (&subject.case, &baseline.case);
    if subject.target != baseline.target {
        let own = subject.description_without(&[&["mode"], shared].concat());
        let of = [subject.mode.name.to_string(), own];
        let of = of.iter().filter(|words| !words.is_empty());
        let of = of.map(String::as_str).collect::<Vec<_>>().join(" · ");
        return [of, subject.target.clone(), baseline_name(subject, baseline)];
    }
    let own = [&["mode", "in flight"], shared].concat();
    let depth = |case: &Case| match case.in_flight {
        Some(depth) => format!("{} × {depth}", case.mode.name),
        None => case.mode.name.to_string(),
    };
    let words = subject.description_without(&own);
    let common = match words.is_empty() {
        true => subject.target.clone(),
        false => format!("{} · {words}", subject.target),
    };
    [common, depth(subject), depth(baseline)]
}

/// Names a baseline of another target, with the parameters in which it differs from its subject.
fn baseline_name(subject: &Case, baseline: &Case) -> String {
    let known = subject.parts();
    let own = baseline.parts().into_iter();
    let own = own.filter(|part| part.0 != "mode" && !known.contains(part));
    let words = own.map(|(_, words)| words);
    let words: Vec<_> = [baseline.target.clone()].into_iter().chain(words).collect();
    words.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Area, Mode};

    #[test]
    fn a_baseline_with_other_parameters_names_them() {
        let subject =
            Case::new("telpher", Area::Agent, Mode::BLOCKING).parameter("protocol", "native");
        let rival = |case: &Case| Case {
            target: "slim".to_owned(),
            mode: Mode::SERIAL,
            ..case.clone()
        };
        assert_eq!(baseline_name(&subject, &rival(&subject)), "slim");
        let otherwise = rival(&subject).parameter("protocol", "slim");
        assert_eq!(baseline_name(&subject, &otherwise), "slim · protocol slim");
    }
}
