//! Throughput plot: a bar for the mean, a whisker for its interval, a dot for each run, a mark for
//! the offered rate.

use super::axis::{Scale, along_x};
use super::panel::Panel;
use super::picture::{Kind, Plot};
use super::svg::{Svg, WIDTH};
use crate::format::{human, margin, short};
use crate::model::{CaseResult, Metric};

const ROW: f64 = 46.0;
const METRIC: Metric = Metric::ObservedRate;

pub(super) fn plot(panel: &Panel<'_>) -> Option<Plot> {
    let shown: Vec<_> = panel
        .coloured()
        .filter(|(one, _)| one.summary.get(METRIC).is_some())
        .collect();
    let high = shown
        .iter()
        .map(|(one, _)| highest(one))
        .fold(0.0, f64::max);
    if high <= 0.0 {
        return None;
    }
    let bottom = shown.len() as f64 * ROW + 4.0;
    let mut svg = Svg::new(bottom + 22.0);
    let scale = Scale::linear([0.0, high * 1.04], [1.0, WIDTH - 14.0]);
    along_x(&mut svg, &scale, [0.0, bottom], short);
    for (row, (result, class)) in shown.iter().enumerate() {
        svg.coloured(class, |svg| {
            draw(
                svg,
                &scale,
                row as f64 * ROW,
                &panel.label(&result.case),
                result,
            );
        });
    }
    let offered = if shown.iter().any(|(one, _)| one.case.paced()) {
        ", dashes the rate offered"
    } else {
        ""
    };
    Some(Plot {
        kind: Kind::Throughput,
        name: format!("throughput-{}", panel.name),
        title: panel.title.clone(),
        caption: format!(
            "Messages per second, {}. Bars are means, whiskers their 95 % intervals, dots runs{offered}.",
            panel.count()
        ),
        svg,
    })
}

fn highest(result: &CaseResult) -> f64 {
    let described = result.summary.get(METRIC);
    let interval = described
        .and_then(|one| one.interval)
        .map(|interval| interval.high);
    described
        .map_or(0.0, |one| one.max)
        .max(interval.unwrap_or(0.0))
        .max(result.case.rate as f64)
}

fn draw(svg: &mut Svg, scale: &Scale, top: f64, label: &str, result: &CaseResult) {
    let Some(described) = result.summary.get(METRIC) else {
        return;
    };
    let (zero, middle) = (scale.at(0.0), top + 29.0);
    let mut value = human(described.mean, METRIC.unit());
    if let Some(interval) = described.interval {
        value += &format!("  {}", margin(described.mean, interval));
    }
    svg.rect([0.0, top - 5.0], [WIDTH, 25.0], "plate");
    svg.text([zero, top + 15.0], "strong", label);
    svg.text([WIDTH - 14.0, top + 15.0], "value end", &value);
    let size = [scale.at(described.mean) - zero, 14.0];
    svg.rect_titled(
        [zero, middle - 7.0],
        size,
        "bar",
        &format!("{label}: {value}"),
    );
    for run in &result.runs {
        let Some(rate) = run.metrics.get(METRIC) else {
            continue;
        };
        // Dots of equal value would hide each other, so each repeat has its own height.
        let y = middle - 4.0 + f64::from(run.repeat * 5 % 9);
        let title = format!("run {}: {}", run.repeat, human(rate, METRIC.unit()));
        svg.circle([scale.at(rate), y], 1.5, "run", &title);
    }
    if let Some(interval) = described.interval {
        svg.whisker_x([scale.at(interval.low), scale.at(interval.high)], middle);
    }
    if result.case.paced() {
        let x = scale.at(result.case.rate as f64);
        svg.line([x, middle - 10.0], [x, middle + 10.0], "mark");
    }
}
