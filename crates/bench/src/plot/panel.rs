//! Panels: cases that share an axis, with their labels and colours.

use super::svg::{Svg, WIDTH};
use crate::model::{Case, CaseResult, Results};

/// Cases that share an axis, and the parameters they have in common.
pub(super) struct Panel<'a> {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) shared: Vec<&'a str>,
    pub(super) cases: Vec<&'a CaseResult>,
    /// Colour class of each case.
    pub(super) colours: Vec<String>,
}

impl<'a> Panel<'a> {
    /// Returns the same panel with only some of its cases.
    pub(super) fn showing(&self, cases: Vec<(&'a CaseResult, String)>) -> Self {
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
    /// Returns every case with its colour class.
    pub(super) fn coloured(&self) -> impl Iterator<Item = (&CaseResult, &str)> {
        self.cases
            .iter()
            .copied()
            .zip(self.colours.iter().map(String::as_str))
    }

    /// Labels a case by the parameters that distinguish it from the others of its panel.
    pub(super) fn label(&self, case: &Case) -> String {
        let own = case.description_without(&self.shared);
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

    /// Formats the number of runs: `n = 25 runs`, or a range if cases differ.
    pub(super) fn count(&self) -> String {
        let counts = self.cases.iter().map(|result| result.summary.runs);
        let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
        match (least, most) {
            (1, 1) => "n = 1 run".to_owned(),
            (least, most) if least == most => format!("n = {least} runs each"),
            (least, most) => format!("n = {least} to {most} runs"),
        }
    }
}

/// Draws the names of the cases above a plot, in rows as needed. Returns the height used.
pub(super) fn legend(svg: &mut Svg, panel: &Panel<'_>) -> f64 {
    let (mut x, mut y) = (1.0, 8.0);
    for (result, class) in panel.coloured() {
        let label = panel.label(&result.case);
        let width = 30.0 + LETTER * label.chars().count() as f64;
        if x + width > WIDTH && x > 1.0 {
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

/// Approximate width of a letter in the bold labels.
const LETTER: f64 = 6.2;

/// Maximum number of cases in a panel before it is split by payload size.
const PANEL_CASES_MAX: usize = 8;

pub(super) fn panels(results: &Results) -> Vec<Panel<'_>> {
    let targets = targets(results);
    let groups = results.comparable().into_iter().flat_map(split);
    groups
        .enumerate()
        .map(|(position, cases)| panel(position, cases, &targets))
        .collect()
}

/// Splits a crowded group into a group for each payload size.
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

/// Returns the colour class of each case. A target has the same colour in every panel; in a panel
/// of one target each case gets its own colour.
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

/// Returns all targets in the order of the results.
pub(super) fn targets(results: &Results) -> Vec<&str> {
    let cases = results.cases.iter().map(|result| &result.case);
    let mut targets: Vec<&str> = Vec::new();
    for case in cases.chain(results.sweeps.iter().map(|sweep| &sweep.case)) {
        if !targets.contains(&case.target.as_str()) {
            targets.push(&case.target);
        }
    }
    targets
}

pub(super) fn class(targets: &[&str], target: &str) -> String {
    let position = targets
        .iter()
        .position(|other| *other == target)
        .unwrap_or(0);
    format!("c{}", position % COLOUR_COUNT)
}
