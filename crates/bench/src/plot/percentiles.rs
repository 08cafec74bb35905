//! Latency plot by percentile. Each further nine takes the same width, so that the tail is
//! readable. Service latency is a line, response latency a dotted line of the same colour.

use super::axis::{Scale, along_y};
use super::panel::{Panel, legend};
use super::picture::{Kind, Plot};
use super::svg::{Svg, WIDTH};
use crate::format::{human_tick, thousands};
use crate::model::{CaseResult, pool};
use meter::histogram::Histogram;

const LEFT: f64 = 54.0;
const RIGHT: f64 = WIDTH - 14.0;
const HEIGHT: f64 = 236.0;

struct Curve<'a> {
    class: &'a str,
    dotted: bool,
    /// Points: number of nines, latency in milliseconds.
    points: Vec<[f64; 2]>,
}

pub(super) fn plot(panel: &Panel<'_>) -> Option<Plot> {
    let mut curves = Vec::new();
    let mut samples = 0;
    for (result, class) in panel.coloured() {
        samples += result
            .summary
            .pooled
            .service
            .map_or(0, |service| service.count);
        curves.extend(curves_of(result, class));
    }
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let nines = points().map(|[nines, _]| *nines).fold(0.0, f64::max);
    let low = points().map(|[_, ms]| *ms).fold(f64::INFINITY, f64::min);
    let high = points().map(|[_, ms]| *ms).fold(0.0, f64::max);
    if nines <= 0.0 {
        return None;
    }
    let mut svg = Svg::new(0.0);
    let top = legend(&mut svg, panel) + 4.0;
    let bottom = top + HEIGHT;
    svg.height = bottom + 24.0;
    let x = Scale::linear([0.0, nines.max(1.0)], [LEFT, RIGHT]);
    let wide = high / low > 12.0;
    let y = if wide {
        Scale::log([low * 0.9, high * 1.1], [bottom, top])
    } else {
        Scale::linear([0.0, high * 1.05], [bottom, top])
    };
    along_y(&mut svg, &y, [LEFT, RIGHT], human_tick);
    nines_axis(&mut svg, &x, nines, [top, bottom]);
    for curve in &curves {
        let points: Vec<_> = curve
            .points
            .iter()
            .map(|[at, ms]| [x.at(*at), y.at(*ms)])
            .collect();
        let class = if curve.dotted {
            "curve dashed"
        } else {
            "curve"
        };
        svg.coloured(curve.class, |svg| svg.polyline(&points, class));
    }
    let response = if curves.iter().any(|curve| curve.dotted) {
        " Line: service, from the real send; dots: response, from the intended send."
    } else {
        " Service latency, from the real send."
    };
    let log = if wide { " (logarithmic)" } else { "" };
    Some(Plot {
        kind: Kind::Latency,
        name: format!("latency-{}", panel.name),
        title: panel.title.clone(),
        caption: format!(
            "Latency{log} by percentile over the {} messages of all runs (pooled), {}.{response}",
            thousands(samples as f64, 0),
            panel.count()
        ),
        svg,
    })
}

fn curves_of<'a>(result: &CaseResult, class: &'a str) -> impl Iterator<Item = Curve<'a>> {
    let service = pool(&result.runs, |run| run.service.as_ref());
    let response = pool(&result.runs, |run| run.response.as_ref());
    // Response latency lies on or above service latency: draw it first, so that the line is on top.
    let curves = [(response, true), (service, false)].into_iter();
    curves.filter_map(move |(histogram, dotted)| {
        Some(Curve {
            class,
            dotted,
            points: points(&histogram?),
        })
    })
}

/// Returns the points of the curve. The largest value is drawn at the quantile of the last sample,
/// 1 − 1/count.
fn points(histogram: &Histogram) -> Vec<[f64; 2]> {
    let last = (histogram.count() as f64).log10().max(0.3);
    let curve = histogram.curve(8);
    curve
        .map(|(quantile, ns)| [(-(1.0 - quantile).log10()).min(last), ns as f64 / 1e6])
        .collect()
}

fn nines_axis(svg: &mut Svg, x: &Scale, nines: f64, [top, bottom]: [f64; 2]) {
    let mut free = f64::NEG_INFINITY;
    for (at, label) in [
        (0.0, "min"),
        (1.0, "90"),
        (2.0, "99"),
        (3.0, "99.9"),
        (4.0, "99.99"),
        (5.0, "99.999"),
        (6.0, "99.9999"),
        (std::f64::consts::LOG10_2, "50"),
    ] {
        if at > nines.max(1.0) + 1e-9 {
            continue;
        }
        let at = x.at(at);
        // The median comes last: it gets a label only if there is room between the others.
        if label == "50" && at - x.at(0.0) < 30.0 {
            continue;
        }
        svg.line([at, top], [at, bottom], "grid");
        if label == "50" || at - free > 8.0 {
            svg.text([at, bottom + 15.0], "small middle", label);
        }
        free = at + 6.0 * label.len() as f64;
    }
}
