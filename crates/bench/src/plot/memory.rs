//! Memory plot: resident memory of the servers over their runs.

use super::axis::{Scale, along_x, along_y};
use super::panel::{Panel, legend};
use super::picture::{Kind, Plot};
use super::svg::{Svg, WIDTH};
use crate::format::bytes;
use crate::model::{CaseResult, Run};

const LEFT: f64 = 66.0;
const RIGHT: f64 = WIDTH - 14.0;
const HEIGHT: f64 = 190.0;

pub(super) fn plot(panel: &Panel<'_>) -> Option<Plot> {
    let cases = panel.coloured().filter(|(result, _)| has_course(result));
    let cases: Vec<(&CaseResult, String)> = cases
        .map(|(result, class)| (result, class.to_owned()))
        .collect();
    let points = || {
        cases
            .iter()
            .flat_map(|(result, _)| courses(result))
            .flatten()
    };
    let high = points().map(|[_, bytes]| bytes).reduce(f64::max)?;
    let last = points().map(|[seconds, _]| seconds).fold(0.0, f64::max);
    let shown = panel.showing(cases);
    let mut svg = Svg::new(0.0);
    let top = legend(&mut svg, &shown) + 4.0;
    let bottom = top + HEIGHT;
    svg.height = bottom + 24.0;
    let x = Scale::linear([0.0, last], [LEFT, RIGHT]);
    let y = Scale::linear([0.0, high * 1.08], [bottom, top]);
    along_y(&mut svg, &y, [LEFT, RIGHT], |value| bytes(value as u64));
    along_x(&mut svg, &x, [top, bottom], |seconds| {
        format!("{seconds} s")
    });
    for (result, class) in shown.coloured() {
        for course in courses(result) {
            let points: Vec<_> = course.map(|[at, bytes]| [x.at(at), y.at(bytes)]).collect();
            svg.coloured(class, |svg| svg.polyline(&points, "curve"));
        }
    }
    Some(Plot {
        kind: Kind::Memory,
        name: format!("memory-{}", panel.name),
        title: panel.title.clone(),
        caption: format!(
            "Resident memory of the server from the first message on, the ramp included: a line for each run, {}.",
            shown.count()
        ),
        svg,
    })
}

fn has_course(result: &CaseResult) -> bool {
    courses(result).next().is_some()
}

/// Returns the memory samples of each run that has them, as seconds and bytes.
fn courses(result: &CaseResult) -> impl Iterator<Item = impl Iterator<Item = [f64; 2]>> {
    let points = |run: &'_ Run| {
        run.measured
            .as_ref()
            .map(|measured| measured.memory.clone())
    };
    let courses = result
        .runs
        .iter()
        .filter_map(points)
        .filter(|points| points.len() > 1);
    courses.map(|points| {
        points
            .into_iter()
            .map(|point| [point.at_ms as f64 / 1e3, point.rss_bytes as f64])
    })
}
