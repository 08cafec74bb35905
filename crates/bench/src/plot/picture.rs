//! A finished plot, as part of a page or as a file of its own.

use super::svg::Svg;

/// Colour style sheet of page and plots.
pub(crate) const THEME: &str = include_str!("theme.css");

/// Style sheet of the parts of a plot.
pub(crate) const STYLE: &str = include_str!("plot.css");

/// A finished plot.
pub(crate) struct Plot {
    /// Section of the page that shows the plot.
    pub(crate) kind: Kind,
    /// File name without extension.
    pub(crate) name: String,
    /// Title of the plot.
    pub(crate) title: String,
    /// Number of runs, and how to read the plot.
    pub(crate) caption: String,
    pub(super) svg: Svg,
}

/// The kinds of plots in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Throughput,
    Latency,
    Capacity,
    Cpu,
    Memory,
    RunOrder,
    Growth,
}

impl Plot {
    /// Renders the plot for the page.
    pub(crate) fn inline(&self) -> String {
        self.svg.element(&self.title)
    }

    /// Renders the plot as a file of its own.
    pub(crate) fn standalone(&self) -> String {
        self.svg.document(&self.title, &format!("{THEME}{STYLE}"))
    }
}
