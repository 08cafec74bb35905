//! Formats of the metrics page: OpenMetrics 1.0 and Prometheus text 0.0.4, chosen by `Accept`.
//!
//! The metrics are encoded as OpenMetrics. The older format is made from that text: it has the same
//! samples, but names a counter's family with `_total`, has no units and no end mark.
//!
//! Sources: <https://prometheus.io/docs/instrumenting/exposition_formats/>,
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>.

use std::borrow::Cow;

/// Format of a metrics page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/openmetrics-text`, version 1.0.0.
    OpenMetrics,
    /// `text/plain`, version 0.0.4.
    Prometheus,
}

impl Format {
    /// Selects the format by the values of the `Accept` header.
    ///
    /// OpenMetrics is used only if it is named and not rated below plain text. A wildcard gets
    /// plain text, as from other exporters.
    pub(crate) fn of<'a>(accept: impl Iterator<Item = &'a str>) -> Self {
        let (mut open_metrics, mut plain) = (0, 0);
        for range in accept.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let quality = match parts.next() {
                Some(kind) if kind.eq_ignore_ascii_case("application/openmetrics-text") => {
                    &mut open_metrics
                }
                Some(kind) if kind.eq_ignore_ascii_case("text/plain") => &mut plain,
                _ => continue,
            };
            *quality = (*quality).max(thousandths(parts));
        }
        match open_metrics > 0 && open_metrics >= plain {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// Returns the value of the `Content-Type` header.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Returns the `q` parameter in thousandths; 1,000 if absent, 0 if it is not a number from 0 to 1.
fn thousandths<'a>(mut parameters: impl Iterator<Item = &'a str>) -> u32 {
    let quality = parameters.find_map(|it| it.strip_prefix("q=").or_else(|| it.strip_prefix("Q=")));
    let Some(quality) = quality else {
        return 1_000;
    };
    match quality.parse::<f32>() {
        Ok(quality) if (0.0..=1.0).contains(&quality) => (quality * 1_000.0) as u32,
        _ => 0,
    }
}

/// Rewrites a page of OpenMetrics text as Prometheus text 0.0.4, which has no exemplars.
pub(super) fn prometheus_text(open_metrics: &str) -> String {
    let mut out = String::with_capacity(open_metrics.len());
    let mut lines = open_metrics.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(description) = line.strip_prefix("# ") else {
            push_line(&mut out, without_exemplar(line));
            continue;
        };
        let Some((name, help)) = words(description, "HELP") else {
            if let Some((name, kind)) = words(description, "TYPE") {
                push_type(&mut out, name, kind);
            }
            continue;
        };
        // The family's name depends on its type, which is in the next line.
        let next = lines.peek().and_then(|next| next.strip_prefix("# "));
        let kind = next.and_then(|next| words(next, "TYPE"));
        let name = kind.map_or(Cow::Borrowed(name), |(name, kind)| family(name, kind));
        push_line(&mut out, &format!("# HELP {name} {help}"));
    }
    out
}

/// Returns a sample without its exemplar, which only buckets have.
fn without_exemplar(line: &str) -> &str {
    let is_bucket = line
        .split_once('{')
        .is_some_and(|(name, _)| name.ends_with("_bucket"));
    match line.rsplit_once(" # {") {
        Some((sample, _)) if is_bucket => sample,
        _ => line,
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn push_type(out: &mut String, name: &str, kind: &str) {
    let name = family(name, kind);
    let kind = match kind {
        "unknown" => "untyped",
        "info" | "stateset" => "gauge",
        kind => kind,
    };
    push_line(out, &format!("# TYPE {name} {kind}"));
}

/// Returns the name of a metric family. Prometheus text names it as its samples.
fn family<'a>(name: &'a str, kind: &str) -> Cow<'a, str> {
    match kind {
        "counter" => Cow::Owned(format!("{name}_total")),
        "info" => Cow::Owned(format!("{name}_info")),
        _ => Cow::Borrowed(name),
    }
}

/// Splits a description line of this kind into the metric's name and the rest.
fn words<'a>(description: &'a str, kind: &str) -> Option<(&'a str, &'a str)> {
    description
        .strip_prefix(kind)?
        .strip_prefix(' ')?
        .split_once(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &str, format: Format) {
        assert_eq!(Format::of([accept].into_iter()), format, "{accept}");
    }

    #[test]
    fn accept_header_picks_the_format() {
        check("*/*", Format::Prometheus);
        check("", Format::Prometheus);
        check("text/html", Format::Prometheus);
        check("application/openmetrics-text", Format::OpenMetrics);
        check(
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.3",
            Format::OpenMetrics,
        );
        check(
            "application/openmetrics-text;q=0.2, text/plain;q=0.9",
            Format::Prometheus,
        );
        check("application/openmetrics-text;q=0", Format::Prometheus);
        check("Application/OpenMetrics-Text; q=1", Format::OpenMetrics);
    }

    #[test]
    fn counters_are_named_with_total_in_prometheus_text() {
        let page = "# HELP a_calls Calls.\n# TYPE a_calls counter\na_calls_total{x=\"y\"} 3\n\
            # HELP a_sync_seconds Time.\n# TYPE a_sync_seconds histogram\n# UNIT a_sync_seconds seconds\n\
            a_sync_seconds_count 1\na_sync_seconds_bucket{le=\"1.0\"} 1 # {trace_id=\"7\"} 0.5 2.5\n\
            # HELP a_build B.\n# TYPE a_build info\na_build_info{v=\"1\"} 1\n# EOF\n";
        let expected = "# HELP a_calls_total Calls.\n# TYPE a_calls_total counter\n\
            a_calls_total{x=\"y\"} 3\n# HELP a_sync_seconds Time.\n\
            # TYPE a_sync_seconds histogram\na_sync_seconds_count 1\n\
            a_sync_seconds_bucket{le=\"1.0\"} 1\n\
            # HELP a_build_info B.\n# TYPE a_build_info gauge\na_build_info{v=\"1\"} 1\n";
        assert_eq!(prometheus_text(page), expected);
    }
}
