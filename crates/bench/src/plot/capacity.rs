//! Capacity plot of a sweep: observed over offered rate. Points below the diagonal show that the
//! system no longer keeps up.

use super::axis::{Scale, along_x, along_y, extent};
use super::picture::{Kind, Plot};
use super::svg::{Svg, WIDTH};
use crate::format::{human, short};
use crate::model::{Metric, SweepResult, SweepStep};

const LEFT: f64 = 50.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 272.0;
const METRIC: Metric = Metric::ObservedRate;

pub(super) fn plot(sweep: &SweepResult, class: &str) -> Option<Plot> {
    let observed = sweep
        .steps
        .iter()
        .filter_map(|step| step.summary.get(METRIC));
    let all = observed
        .flat_map(|one| [one.min, one.max, one.mean])
        .filter(|rate| *rate > 0.0);
    let [low, high] = extent(all, 0.0)?;
    let [first, last] = extent(sweep.steps.iter().map(|step| step.rate as f64), 0.0)?;
    let x = Scale::log([first / 1.15, last * 1.15], [LEFT, RIGHT]);
    let y = Scale::log([low.min(first) / 1.15, high * 1.3], [BOTTOM, TOP]);
    let mut svg = Svg::new(BOTTOM + 24.0);
    if let Some((lower, upper)) = sweep
        .outcome
        .as_ref()
        .and_then(|one| Some((one.rate_lower, one.rate_upper?)))
    {
        let (from, to) = (x.at(lower as f64), x.at(upper as f64));
        svg.coloured(class, |svg| {
            svg.rect([from, TOP], [to - from, BOTTOM - TOP], "band");
        });
    }
    along_x(&mut svg, &x, [TOP, BOTTOM], short);
    along_y(&mut svg, &y, [LEFT, RIGHT], short);
    let diagonal_end = last.min(high * 1.3);
    svg.line(
        [x.at(first), y.at(first)],
        [x.at(diagonal_end), y.at(diagonal_end)],
        "mark",
    );
    svg.coloured(class, |svg| draw(svg, sweep, &x, &y));
    if let Some(found) = &sweep.outcome {
        let best = human(found.best_observed, METRIC.unit());
        let label = format!(
            "best: {best} at {} offered",
            human(found.best_rate as f64, METRIC.unit())
        );
        svg.coloured(class, |svg| {
            svg.text([LEFT + 8.0, TOP + 14.0], "named", &label)
        });
    }
    let runs = sweep.options.repeats;
    Some(Plot {
        kind: Kind::Capacity,
        name: format!("capacity-{}", sweep.case.key()),
        title: format!(
            "{} · {}",
            sweep.case.target,
            sweep.case.description_without(&["rate"])
        ),
        caption: format!(
            "Messages per second observed (up) against offered (across), both logarithmic, n = {runs} per \
             step. Dashes: observed = offered; ring: best step; band: between the last rate that \
             improved and the first that did not."
        ),
        svg,
    })
}

fn draw(svg: &mut Svg, sweep: &SweepResult, x: &Scale, y: &Scale) {
    let mut steps: Vec<(&SweepStep, f64)> = sweep
        .steps
        .iter()
        .filter_map(|step| Some((step, step.summary.mean(METRIC)?)))
        .collect();
    steps.sort_by_key(|(step, _)| step.rate);
    let points: Vec<_> = steps
        .iter()
        .map(|(step, rate)| [x.at(step.rate as f64), y.at(*rate)])
        .collect();
    svg.polyline(&points, "curve");
    let best = sweep.best().map(|step| step.step);
    for ((step, rate), point) in steps.iter().zip(points) {
        if let Some(interval) = step.summary.get(METRIC).and_then(|one| one.interval) {
            svg.whisker_y(point[0], [y.at(interval.low), y.at(interval.high)]);
        }
        let title = format!(
            "step {}, {}: {}/s offered, {} observed",
            step.step,
            step.phase.name(),
            step.rate,
            human(*rate, METRIC.unit())
        );
        if best == Some(step.step) {
            svg.circle(point, 5.0, "ring", &title);
        } else {
            svg.circle(point, 3.0, "dot", &title);
        }
    }
}
