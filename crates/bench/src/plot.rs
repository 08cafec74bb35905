//! Plots as SVG: real text, colours from style sheet variables, light and dark, no script.
//!
//! A plot is a picture of [`Results`], and its caption states the number of runs. The same picture
//! appears in the page, where it inherits the page's colours, and in a file of its own, which
//! contains them.

mod axis;
mod bars;
mod capacity;
mod cpu;
mod growth;
mod memory;
mod panel;
mod percentiles;
mod picture;
mod run_order;
mod svg;

use crate::model::{Case, Results};
pub(crate) use growth::plots as growth;
use panel::{Panel, class, panels, targets};
pub(crate) use picture::{Kind, Plot, STYLE, THEME};

/// Draws all plots for which the results have figures.
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

/// Returns the colour class of a case, the same as in the plots.
pub(crate) fn colour(results: &Results, case: &Case) -> String {
    let panels = panels(results);
    let mut coloured = panels.iter().flat_map(Panel::coloured);
    match coloured.find(|(result, _)| result.case == *case) {
        Some((_, class)) => class.to_owned(),
        None => class(&targets(results), &case.target),
    }
}

#[cfg(test)]
mod tests;
