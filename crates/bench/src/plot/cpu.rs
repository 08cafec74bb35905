//! CPU plot: CPU time by role, stacked.

use super::axis::{Scale, along_x};
use super::panel::Panel;
use super::picture::{Kind, Plot};
use super::svg::{Svg, WIDTH};
use crate::format::human;
use crate::model::{CaseResult, Metric, Unit};
use crate::process::Role;

const ROW: f64 = 46.0;
const TOP: f64 = 26.0;

pub(super) fn plot(panel: &Panel<'_>) -> Option<Plot> {
    let shown: Vec<_> = panel
        .cases
        .iter()
        .filter(|one| one.summary.get(Metric::TotalCpu).is_some())
        .copied()
        .collect();
    let high = shown.iter().map(|one| highest(one)).fold(0.0, f64::max);
    if high <= 0.0 {
        return None;
    }
    let bottom = TOP + shown.len() as f64 * ROW + 4.0;
    let mut svg = Svg::new(bottom + 22.0);
    let scale = Scale::linear([0.0, high * 1.04], [1.0, WIDTH - 14.0]);
    legend(&mut svg, &shown);
    along_x(&mut svg, &scale, [TOP, bottom], |percent| {
        format!("{percent} %")
    });
    for (row, result) in shown.iter().enumerate() {
        draw(
            &mut svg,
            &scale,
            TOP + row as f64 * ROW,
            &panel.label(&result.case),
            result,
        );
    }
    Some(Plot {
        kind: Kind::Cpu,
        name: format!("cpu-{}", panel.name),
        title: panel.title.clone(),
        caption: format!(
            "CPU time by role in percent of one core, {}. Whiskers: 95 % interval of the total; at the \
             right the total and, per message, the node's and all roles' CPU time.",
            panel.count()
        ),
        svg,
    })
}

fn highest(result: &CaseResult) -> f64 {
    result.summary.get(Metric::TotalCpu).map_or(0.0, |total| {
        total
            .interval
            .map_or(total.mean, |interval| interval.high.max(total.mean))
    })
}

fn draw(svg: &mut Svg, scale: &Scale, top: f64, label: &str, result: &CaseResult) {
    let Some(total) = result.summary.get(Metric::TotalCpu) else {
        return;
    };
    let middle = top + 29.0;
    let mean = |metric: Metric| result.summary.mean(metric);
    let mut value = human(total.mean, Unit::Percent);
    let per_message = [
        ("node", Metric::NodeCpuPerMessage),
        ("all", Metric::TotalCpuPerMessage),
    ];
    for (role_name, metric) in per_message {
        if let Some(used) = mean(metric) {
            value += &format!("  ·  {role_name} {}/msg", human(used, metric.unit()));
        }
    }
    svg.rect([0.0, top - 5.0], [WIDTH, 25.0], "plate");
    svg.text([1.0, top + 15.0], "strong", label);
    svg.text([WIDTH - 14.0, top + 15.0], "value end", &value);
    let mut used = 0.0;
    for role in ORDER {
        let Some(percent) = mean(Metric::cpu_percent(role)) else {
            continue;
        };
        let (from, to) = (scale.at(used), scale.at(used + percent));
        let title = format!("{}: {}", role.name(), human(percent, Unit::Percent));
        svg.rect_titled([from, middle - 7.0], [to - from, 14.0], role.name(), &title);
        used += percent;
    }
    if let Some(interval) = total.interval {
        svg.whisker_x([scale.at(interval.low), scale.at(interval.high)], middle);
    }
}

/// The node comes first: it is the measured process, and lengths compare best from the left edge.
const ORDER: [Role; 3] = [Role::Node, Role::Responder, Role::Sender];

fn legend(svg: &mut Svg, shown: &[&CaseResult]) {
    let mut x = 1.0;
    for role in ORDER {
        let metric = Metric::cpu_percent(role);
        if shown.iter().any(|one| one.summary.get(metric).is_some()) {
            svg.rect([x, 3.0], [10.0, 10.0], role.name());
            svg.text([x + 15.0, 12.0], "", role.name());
            x += 32.0 + 6.6 * role.name().len() as f64;
        }
    }
}
