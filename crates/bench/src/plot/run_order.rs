//! Run order plot: every run in the order in which it ran, which shows drift, warm-up and outliers
//! that a mean hides.

use super::axis::{Scale, along_y, extent};
use super::panel::{Panel, legend};
use super::picture::{Kind, Plot};
use super::svg::{Svg, WIDTH};
use crate::format::human;
use crate::model::{CaseResult, Metric};
use crate::stats::Interval;

const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH - 14.0;
const HEIGHT: f64 = 190.0;

/// Minimum number of runs for an interval band: the bands of fewer runs are so wide that they
/// overlap.
const BAND_RUNS_MIN: usize = 5;

pub(super) fn plot(panel: &Panel<'_>) -> Option<Plot> {
    let metric = *panel.cases.first()?.case.headline().first()?;
    let runs = || panel.cases.iter().flat_map(|one| &one.runs);
    let values = runs().filter_map(|run| run.metrics.get(metric));
    let bounds = panel.cases.iter().filter_map(|one| band(one, metric));
    let bounds = bounds.flat_map(|interval| [interval.low, interval.high]);
    let has_band = panel.cases.iter().any(|one| band(one, metric).is_some());
    let [low, high] = extent(values.chain(bounds), 0.08)?;
    let [first, last] = extent(runs().map(|run| f64::from(run.order)), 0.0)?;
    let mut svg = Svg::new(0.0);
    let top = legend(&mut svg, panel) + 4.0;
    let bottom = top + HEIGHT;
    svg.height = bottom + 24.0;
    let x = Scale::linear([first, last.max(first + 1.0)], [LEFT + 8.0, RIGHT - 8.0]);
    let y = Scale::linear([low.max(0.0), high], [bottom, top]);
    along_y(&mut svg, &y, [LEFT, RIGHT], |value| {
        human(value, metric.unit())
    });
    for order in x.ticks(6).into_iter().filter(|tick| tick.fract() == 0.0) {
        svg.text(
            [x.at(order), bottom + 15.0],
            "small middle",
            &format!("{order}"),
        );
    }
    for (result, class) in panel.coloured() {
        svg.coloured(class, |svg| draw(svg, result, metric, [&x, &y]));
    }
    let start = if low > 0.0 {
        "; the axis does not start at zero"
    } else {
        ""
    };
    let band = match has_band {
        true => "; band: its 95 % interval",
        false => " (no intervals: fewer than 5 runs)",
    };
    Some(Plot {
        kind: Kind::RunOrder,
        name: format!("run-order-{}", panel.name),
        title: panel.title.clone(),
        caption: format!(
            "{} of each run by its place in the suite, {}. Line: mean{band}{start}.",
            capital(metric.label()),
            panel.count()
        ),
        svg,
    })
}

/// Returns the interval of the mean, if there are enough runs to show it.
fn band(result: &CaseResult, metric: Metric) -> Option<Interval> {
    let described = result.summary.get(metric)?;
    described
        .interval
        .filter(|_| result.runs.len() >= BAND_RUNS_MIN)
}

fn draw(svg: &mut Svg, result: &CaseResult, metric: Metric, [x, y]: [&Scale; 2]) {
    let Some(described) = result.summary.get(metric) else {
        return;
    };
    let orders = result.runs.iter().map(|run| f64::from(run.order));
    let Some([first, last]) = extent(orders, 0.0) else {
        return;
    };
    let (start, end) = (x.at(first) - 6.0, x.at(last) + 6.0);
    if let Some(interval) = band(result, metric) {
        let (top, bottom) = (y.at(interval.high), y.at(interval.low));
        svg.rect([start, top], [end - start, (bottom - top).max(1.0)], "band");
    }
    svg.line(
        [start, y.at(described.mean)],
        [end, y.at(described.mean)],
        "mean",
    );
    for run in &result.runs {
        let Some(value) = run.metrics.get(metric) else {
            continue;
        };
        let title = format!(
            "{} {}, repeat {}: {}",
            result.case.target,
            result.case.description(),
            run.repeat,
            human(value, metric.unit())
        );
        svg.circle(
            [x.at(f64::from(run.order)), y.at(value)],
            3.0,
            "dot",
            &title,
        );
    }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
