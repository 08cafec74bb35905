//! The page of metrics of a node: the text format of Prometheus.

use std::collections::BTreeMap;

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

/// The values of a page by the name of the metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metrics(BTreeMap<String, Vec<Series>>);

impl Series {
    /// Returns the value of a label; empty if there is none.
    pub(crate) fn label(&self, name: &str) -> &str {
        let label = self.labels.iter().find(|(found, _)| found == name);
        label.map_or("", |(_, value)| value)
    }
}

impl Metrics {
    /// Parses a page. Lines that are not values are skipped.
    pub(crate) fn parse(page: &str) -> Self {
        let mut metrics = Self::default();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, series)) = parse_line(line) {
                metrics.0.entry(name.to_owned()).or_default().push(series);
            }
        }
        metrics
    }

    /// Returns all values of a metric.
    pub(crate) fn all(&self, name: &str) -> &[Series] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the sum of the values of a metric; `None` if it has none.
    pub(crate) fn sum(&self, name: &str) -> Option<f64> {
        let series = self.0.get(name)?;
        Some(series.iter().map(|it| it.value).sum())
    }

    /// Returns the value of a metric with one label, or `None`.
    pub(crate) fn labelled(&self, name: &str, label: &str, value: &str) -> Option<f64> {
        let found = self.all(name).iter().find(|it| it.label(label) == value);
        found.map(|it| it.value)
    }

    /// Returns the upper bounds of a histogram with the cumulative counts, all labels together.
    pub(crate) fn buckets(&self, name: &str) -> Vec<(f64, f64)> {
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for series in self.all(&format!("{name}_bucket")) {
            let Some(bound) = parse_number(series.label("le")) else {
                continue;
            };
            match buckets.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, count)) => *count += series.value,
                None => buckets.push((bound, series.value)),
            }
        }
        buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        buckets
    }
}

/// Returns the upper bound of the bucket that contains a quantile of the values that were observed
/// between two states of a histogram; `None` if there were none.
pub(crate) fn quantile(before: &[(f64, f64)], now: &[(f64, f64)], quantile: f64) -> Option<f64> {
    let earlier = |bound: f64| {
        let found = before.iter().find(|(known, _)| *known == bound);
        found.map_or(0.0, |(_, count)| *count)
    };
    let counts: Vec<_> = now
        .iter()
        .map(|(bound, count)| (*bound, count - earlier(*bound)))
        .collect();
    let total = counts.last()?.1;
    if total <= 0.0 {
        return None;
    }
    let rank = quantile * total;
    let found = counts.iter().find(|(_, count)| *count >= rank)?;
    match found.0.is_finite() {
        true => Some(found.0),
        // Values above the highest bound: it is the best that is known.
        false => counts.iter().rev().map(|it| it.0).find(|it| it.is_finite()),
    }
}

/// Parses `name{label="value"} 1.5`.
fn parse_line(line: &str) -> Option<(&str, Series)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => parse_labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value = parse_number(rest.split_whitespace().next()?)?;
    Some((name, Series { labels, value }))
}

type Labels = Vec<(String, String)>;

/// Parses labels up to the closing brace, and returns them with the rest of the line.
fn parse_labels(text: &str) -> Option<(Labels, &str)> {
    let (mut labels, mut rest) = (Vec::new(), text);
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next()? {
                (at, '"') => break at + 1,
                (_, '\\') => match letters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((name.to_owned(), value));
        rest = after.get(end..)?.trim_start_matches(',');
    }
}

fn parse_number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        text => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"
# HELP telpher_requests Calls accepted from callers.
# TYPE telpher_requests counter
telpher_requests_total 12
telpher_kafka_group_lag{group="a \"b\", {c}",topic="t\\u",partition="0"} 3
telpher_kafka_group_lag{group="d",topic="t",partition="1"} 4
telpher_journal_sync_seconds_bucket{le="0.001"} 90
telpher_journal_sync_seconds_bucket{le="0.01"} 99
telpher_journal_sync_seconds_bucket{le="+Inf"} 100
what is this
telpher_broken{a="b} 1
"#;

    #[test]
    fn values_and_labels_are_parsed() {
        let metrics = Metrics::parse(PAGE);
        assert_eq!(metrics.sum("telpher_requests_total"), Some(12.0));
        assert_eq!(metrics.sum("telpher_kafka_group_lag"), Some(7.0));
        assert_eq!(metrics.sum("telpher_broken"), None);
        let lags = metrics.all("telpher_kafka_group_lag");
        assert_eq!(lags[0].label("group"), "a \"b\", {c}");
        assert_eq!(lags[0].label("topic"), "t\\u");
        assert_eq!(lags[0].label("none"), "");
        assert_eq!(
            metrics.labelled("telpher_kafka_group_lag", "group", "d"),
            Some(4.0)
        );
    }

    #[test]
    fn quantiles_are_those_of_the_interval() {
        let now = Metrics::parse(PAGE).buckets("telpher_journal_sync_seconds");
        assert_eq!(quantile(&[], &now, 0.5), Some(0.001));
        assert_eq!(quantile(&[], &now, 0.95), Some(0.01));
        // Above the highest bound.
        assert_eq!(quantile(&[], &now, 1.0), Some(0.01));
        let before = [(0.001, 90.0), (0.01, 90.0), (f64::INFINITY, 90.0)];
        assert_eq!(quantile(&before, &now, 0.5), Some(0.01));
        assert_eq!(quantile(&now, &now, 0.5), None);
        assert_eq!(quantile(&[], &[], 0.5), None);
    }
}
