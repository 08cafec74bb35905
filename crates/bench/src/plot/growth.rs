//! Growth plots: cost of a node by the number of its items, both axes logarithmic.

use super::axis::{Scale, along_x, along_y};
use super::picture::{Kind, Plot};
use super::svg::{Svg, WIDTH};
use crate::format::short;
use crate::growth::{Dimension, Growth, LogPoint, Point, size};

const LEFT: f64 = 66.0;
const RIGHT: f64 = WIDTH - 14.0;
const HEIGHT: f64 = 230.0;

/// Approximate width of a letter in the bold labels.
const LETTER: f64 = 6.6;

/// A named line of a plot.
struct Line {
    name: &'static str,
    /// Colour class.
    class: String,
    points: Vec<Mark>,
}

/// A point of a line; `low..high` is the range of its repeats.
struct Mark {
    x: f64,
    y: f64,
    low: f64,
    high: f64,
}

impl Mark {
    fn exact(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            low: y,
            high: y,
        }
    }
}

/// A plot without its lines.
struct Frame<'a> {
    name: &'a str,
    title: &'a str,
    caption: &'a str,
    x_label: fn(f64) -> String,
    y_label: fn(f64) -> String,
}

/// Draws the plots for which there are figures.
pub(crate) fn plots(growth: &Growth) -> Vec<Plot> {
    let mut plots = Vec::new();
    let cpu = Frame {
        name: "growth-cpu",
        title: "CPU of the node per message, by number of items",
        caption: "A flat line: a message costs the same, however many items there are.",
        x_label: short,
        y_label: |microseconds| format!("{} µs", short(microseconds)),
    };
    plots.extend(cpu.draw(items(growth, |point| range(point, &point.cpu_us))));
    let memory = Frame {
        name: "growth-memory",
        title: "memory of the node per item, by number of items",
        caption: "It falls while all items share fixed costs, and is flat at the cost of an item.",
        x_label: short,
        y_label: size,
    };
    let empty = growth.empty_rss_bytes;
    let each = |point: &Point| {
        let each = point.bytes_each(empty)?;
        Some(Mark::exact(point.items as f64, each))
    };
    plots.extend(memory.draw(items(growth, each)));
    let rate = Frame {
        name: "growth-rate",
        title: "rate, as a multiple of the rate with one item",
        caption: "A flat line at 1: the rate does not depend on the number of items.",
        x_label: short,
        y_label: times,
    };
    plots.extend(rate.draw(relative_rates(growth)));
    let log = Frame {
        name: "growth-log",
        title: "times of a node, as multiples of those with the shortest log",
        caption: "A flat line: the time does not depend on the length of the log.",
        x_label: size,
        y_label: times,
    };
    plots.extend(log.draw(log_lines(&growth.log)));
    plots
}

/// Formats a ratio on an axis, without the last digits of a binary fraction.
fn times(ratio: f64) -> String {
    let text = format!("{ratio:.4}");
    format!("{} ×", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns the mean of the repeats of a step, with their range.
fn range(point: &Point, values: &[f64]) -> Option<Mark> {
    let described = crate::stats::describe(values)?;
    Some(Mark {
        x: point.items as f64,
        y: described.mean,
        low: described.min,
        high: described.max,
    })
}

/// Returns a line for each kind of item. Each kind has the same colour in every plot.
fn items(growth: &Growth, mark: impl Fn(&Point) -> Option<Mark>) -> Vec<Line> {
    let line = |curve: &crate::growth::Curve| Line {
        name: curve.of.name(),
        class: class(curve.of),
        points: curve.points.iter().filter_map(&mark).collect(),
    };
    growth.curves.iter().map(line).collect()
}

fn class(of: Dimension) -> String {
    let position = Dimension::ALL.iter().position(|one| *one == of);
    format!("c{}", position.unwrap_or(0))
}

fn relative_rates(growth: &Growth) -> Vec<Line> {
    let mut lines = items(growth, |point| range(point, &point.rates));
    for line in &mut lines {
        let Some(base) = line.points.first().map(|first| first.y) else {
            continue;
        };
        for mark in &mut line.points {
            mark.y /= base;
            mark.low /= base;
            mark.high /= base;
        }
    }
    lines
}

/// A time of a step of the log, in milliseconds.
type LogTime = fn(&LogPoint) -> Option<f64>;

fn log_lines(points: &[LogPoint]) -> Vec<Line> {
    let times: [LogTime; 4] = [
        |point| Some(point.start_ms),
        |point| Some(point.read_begin_ms),
        |point| Some(point.read_end_ms),
        |point| point.compaction_ms,
    ];
    let names = [
        "start after kill -9",
        "first read, beginning",
        "first read, end",
        "compaction",
    ];
    let lines = names.into_iter().zip(times).enumerate();
    lines
        .map(|(position, (name, time))| log_line(points, position, name, time))
        .collect()
}

/// Returns a time relative to the first step that has it.
fn log_line(points: &[LogPoint], position: usize, name: &'static str, time: LogTime) -> Line {
    let measured = points.iter();
    let measured: Vec<(f64, f64)> = measured
        .filter_map(|point| Some((point.bytes as f64, time(point)?)))
        .collect();
    let base = measured.first().map_or(1.0, |(_, time)| *time);
    Line {
        name,
        class: format!("c{position}"),
        points: measured
            .into_iter()
            .map(|(size, time)| Mark::exact(size, time / base))
            .collect(),
    }
}

impl Frame<'_> {
    /// Draws the lines. `None` without a point.
    fn draw(&self, mut lines: Vec<Line>) -> Option<Plot> {
        for line in &mut lines {
            // A logarithmic axis has no zero.
            line.points.retain(|mark| mark.x > 0.0 && mark.low > 0.0);
        }
        lines.retain(|line| !line.points.is_empty());
        let marks = || lines.iter().flat_map(|line| &line.points);
        let x_high = marks().map(|mark| mark.x).reduce(f64::max)?;
        let x_low = marks().map(|mark| mark.x).fold(x_high, f64::min);
        let high = marks().map(|mark| mark.high).fold(0.0, f64::max);
        let low = marks().map(|mark| mark.low).fold(high, f64::min);
        let mut svg = Svg::new(0.0);
        let top = legend(&mut svg, &lines) + 4.0;
        let bottom = top + HEIGHT;
        svg.height = bottom + 24.0;
        let x = Scale::log([x_low, x_high], [LEFT + 8.0, RIGHT - 8.0]);
        let y = Scale::log(decades(low, high), [bottom, top]);
        along_y(&mut svg, &y, [LEFT, RIGHT], self.y_label);
        along_x(&mut svg, &x, [top, bottom], self.x_label);
        for line in &lines {
            let at = |mark: &Mark| [x.at(mark.x), y.at(mark.y)];
            let points: Vec<_> = line.points.iter().map(at).collect();
            svg.coloured(&line.class, |svg| {
                svg.polyline(&points, "curve");
                for mark in &line.points {
                    if mark.high > mark.low {
                        svg.whisker_y(x.at(mark.x), [y.at(mark.low), y.at(mark.high)]);
                    }
                    let title = format!(
                        "{}, {}: {}",
                        line.name,
                        (self.x_label)(mark.x),
                        (self.y_label)(mark.y)
                    );
                    svg.circle(at(mark), 3.5, "dot", &title);
                }
            });
        }
        Some(Plot {
            kind: Kind::Growth,
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            caption: self.caption.to_owned(),
            svg,
        })
    }
}

/// Widens a range to at least two decades, so that noise does not fill the plot.
fn decades(low: f64, high: f64) -> [f64; 2] {
    let (low, high) = (low / 1.3, high * 1.3);
    let missing = (2.0 - (high / low).log10()).max(0.0) / 2.0;
    let factor = 10f64.powf(missing);
    [low / factor, high * factor]
}

/// Draws the names of the lines above a plot, in rows as needed. Returns the height used.
fn legend(svg: &mut Svg, lines: &[Line]) -> f64 {
    let (mut x, mut y) = (1.0, 8.0);
    for line in lines {
        let width = 30.0 + LETTER * line.name.chars().count() as f64;
        if x + width > WIDTH && x > 1.0 {
            (x, y) = (1.0, y + 18.0);
        }
        svg.coloured(&line.class, |svg| {
            svg.circle([x + 4.0, y], 4.0, "dot", "");
            svg.text([x + 13.0, y + 4.0], "named", line.name);
        });
        x += width;
    }
    y + 16.0
}
