//! Plots as SVG: real text, colours from style sheet variables, light and dark, no script.
//!
//! A plot is a picture of [`Results`]; its caption says how many runs stand behind it. The same picture
//! stands in the page, where it inherits the page's colours, and alone in a file, where it brings them.

mod axis;
mod bars;
mod capacity;
mod cpu;
mod memory;
mod percentiles;
mod run_order;
mod svg;

use crate::model::{Case, CaseResult, Results};
use svg::Svg;

/// The colours of page and plots.
pub(crate) const THEME: &str = include_str!("plot/theme.css");

/// The look of the parts of a plot.
pub(crate) const STYLE: &str = include_str!("plot/plot.css");

/// A finished plot.
pub(crate) struct Plot {
    /// Which section of the page it belongs to.
    pub(crate) kind: Kind,
    /// Name of its file, without extension.
    pub(crate) name: String,
    /// What it shows.
    pub(crate) title: String,
    /// How many runs, and how to read it.
    pub(crate) caption: String,
    svg: Svg,
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
}

impl Plot {
    /// The picture for the page.
    pub(crate) fn inline(&self) -> String {
        self.svg.element(&self.title)
    }

    /// The picture for a file of its own.
    pub(crate) fn standalone(&self) -> String {
        self.svg.document(&self.title, &format!("{THEME}{STYLE}"))
    }
}

/// All plots that the results can fill.
pub(crate) fn all(results: &Results) -> Vec<Plot> {
    let panels = panels(results);
    let targets = targets(results);
    let mut plots = Vec::new();
    plots.extend(panels.iter().filter_map(bars::plot));
    plots.extend(panels.iter().filter_map(percentiles::plot));
    let capacity = |sweep| capacity::plot(sweep, &class(&targets, &sweep.case.target));
    plots.extend(results.sweeps.iter().filter_map(capacity));
    plots.extend(panels.iter().filter_map(cpu::plot));
    plots.extend(panels.iter().filter_map(memory::plot));
    plots.extend(panels.iter().filter_map(run_order::plot));
    plots
}

/// The class that gives a case the colour that it has in the plots.
pub(crate) fn colour(results: &Results, case: &Case) -> String {
    let panels = panels(results);
    let mut coloured = panels.iter().flat_map(Panel::coloured);
    match coloured.find(|(result, _)| result.case == *case) {
        Some((_, class)) => class.to_owned(),
        None => class(&targets(results), &case.target),
    }
}

/// Cases that share an axis, and what they have in common in words.
struct Panel<'a> {
    name: String,
    title: String,
    shared: Vec<&'a str>,
    cases: Vec<&'a CaseResult>,
    /// The class of each case.
    colours: Vec<String>,
}

impl<'a> Panel<'a> {
    /// The same panel with some of its cases.
    fn showing(&self, cases: Vec<(&'a CaseResult, String)>) -> Self {
        let (cases, colours) = cases.into_iter().unzip();
        Self {
            name: self.name.clone(),
            title: self.title.clone(),
            shared: self.shared.clone(),
            cases,
            colours,
        }
    }
}

impl Panel<'_> {
    /// Every case with its colour.
    fn coloured(&self) -> impl Iterator<Item = (&CaseResult, &str)> {
        self.cases
            .iter()
            .copied()
            .zip(self.colours.iter().map(String::as_str))
    }

    /// What tells a case from the others of its panel.
    fn label(&self, case: &Case) -> String {
        let own = case.words_without(&self.shared);
        let targets = self
            .cases
            .iter()
            .any(|other| other.case.target != case.target);
        match (targets, own.is_empty()) {
            (false, false) => own,
            (_, true) => case.target.clone(),
            (true, false) => format!("{} · {own}", case.target),
        }
    }

    /// `n = 25 runs`, or the range where cases differ.
    fn count(&self) -> String {
        let counts = self.cases.iter().map(|result| result.summary.runs);
        let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
        match (least, most) {
            (1, 1) => "n = 1 run".to_owned(),
            (least, most) if least == most => format!("n = {least} runs each"),
            (least, most) => format!("n = {least} to {most} runs"),
        }
    }
}

/// The names of the cases above a plot, in rows as needed. Returns the height used.
fn legend(svg: &mut Svg, panel: &Panel<'_>) -> f64 {
    let (mut x, mut y) = (1.0, 8.0);
    for (result, class) in panel.coloured() {
        let label = panel.label(&result.case);
        let width = 30.0 + LETTER * label.chars().count() as f64;
        if x + width > svg::WIDTH && x > 1.0 {
            (x, y) = (1.0, y + 18.0);
        }
        svg.coloured(class, |svg| {
            svg.circle([x + 4.0, y], 4.0, "dot", "");
            svg.text([x + 13.0, y + 4.0], "named", &label);
        });
        x += width;
    }
    y + 16.0
}

/// About the width of a letter of the bold labels.
const LETTER: f64 = 6.2;

/// The most cases a panel holds before it is split by size.
const PANEL_CASES_MAX: usize = 8;

fn panels(results: &Results) -> Vec<Panel<'_>> {
    let targets = targets(results);
    let groups = results.comparable().into_iter().flat_map(split);
    groups
        .enumerate()
        .map(|(position, cases)| panel(position, cases, &targets))
        .collect()
}

/// A crowded group becomes a group for each payload size.
fn split(group: Vec<&CaseResult>) -> Vec<Vec<&CaseResult>> {
    if group.len() <= PANEL_CASES_MAX {
        return vec![group];
    }
    let mut sizes: Vec<Vec<&CaseResult>> = Vec::new();
    for result in group {
        match sizes
            .iter_mut()
            .find(|size| size[0].case.size == result.case.size)
        {
            Some(size) => size.push(result),
            None => sizes.push(vec![result]),
        }
    }
    sizes
}

fn panel<'a>(position: usize, cases: Vec<&'a CaseResult>, targets: &[&str]) -> Panel<'a> {
    let first = &cases[0].case;
    let parts = first.parts();
    let common =
        |part: &&(&'a str, String)| cases.iter().all(|one| one.case.parts().contains(part));
    let common: Vec<_> = parts.iter().filter(common).collect();
    let words: Vec<&str> = common.iter().map(|(_, words)| words.as_str()).collect();
    let modes = if words.first() == Some(&first.mode.name.as_ref()) {
        ""
    } else {
        "modes · "
    };
    Panel {
        name: format!("{}-{}-{position}", first.area.name(), first.mode.name),
        title: format!("{modes}{}", words.join(" · ")),
        shared: common.iter().map(|(name, _)| *name).collect(),
        colours: colours(&cases, targets),
        cases,
    }
}

/// A target keeps its colour in every panel. In a panel of one target the colours are free for its
/// cases.
fn colours(cases: &[&CaseResult], targets: &[&str]) -> Vec<String> {
    let several = cases
        .iter()
        .any(|one| one.case.target != cases[0].case.target);
    let numbered = (0..cases.len()).map(|position| format!("c{}", position % COLOUR_COUNT));
    match several || cases.len() == 1 {
        true => cases
            .iter()
            .map(|one| class(targets, &one.case.target))
            .collect(),
        false => numbered.collect(),
    }
}

const COLOUR_COUNT: usize = 6;

/// All targets in the order of the results.
fn targets(results: &Results) -> Vec<&str> {
    let cases = results.cases.iter().map(|result| &result.case);
    let mut targets: Vec<&str> = Vec::new();
    for case in cases.chain(results.sweeps.iter().map(|sweep| &sweep.case)) {
        if !targets.contains(&case.target.as_str()) {
            targets.push(&case.target);
        }
    }
    targets
}

fn class(targets: &[&str], target: &str) -> String {
    let position = targets
        .iter()
        .position(|other| *other == target)
        .unwrap_or(0);
    format!("c{}", position % COLOUR_COUNT)
}

#[cfg(test)]
mod tests;
