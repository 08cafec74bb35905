//! Reports of [`Results`]: terminal tables, Markdown in the styles of the published reports that we
//! reproduce, tab-separated values, and an HTML page.
//!
//! A report computes nothing but its layout, so two reports of the same results cannot disagree.

mod changes;
mod common;
mod html;
mod kafka;
mod markdown;
mod overview;
mod quota;
mod slim;
mod store;
mod table;
mod tsv;
mod uvrpc;

pub use self::slim::{full as slim, suite_summary, technical_report};
pub use changes::changes;
pub use html::page;
pub use kafka::{chronik, csv, json};
pub use markdown::markdown;
pub use overview::{Detail, Section, overview, terminal};
pub use quota::{Threshold, limiter, thresholds};
pub use store::fleetlm;
pub use table::Table;
pub use tsv::tsv;
pub use uvrpc::uvrpc;

use crate::model::Results;

/// A style of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Tables for a terminal.
    Table,
    /// Markdown with every figure, headed by command, commit and machine.
    Markdown,
    /// The SLIM suite's report: live lines, summary tables, technical report.
    Slim,
    /// The UVRPC report: every run of the call modes, averages, speed-ups.
    Uvrpc,
    /// FleetLM's report: a row with throughput, CPU and memory for each client API and each rival.
    Fleetlm,
    /// Chronik's report: throughput, bandwidth and latencies for each `acks` setting, ratios.
    Chronik,
    /// The rate limiter's report: answers by status, latencies, endpoints, thresholds.
    Limiter,
}

impl Style {
    /// All styles.
    pub const ALL: [Self; 7] = [
        Self::Chronik,
        Self::Fleetlm,
        Self::Limiter,
        Self::Table,
        Self::Markdown,
        Self::Slim,
        Self::Uvrpc,
    ];

    /// Renders the report as text.
    #[must_use]
    pub fn render(self, results: &Results) -> String {
        match self {
            Self::Table => terminal(results),
            Self::Markdown => markdown(results),
            Self::Slim => slim(results),
            Self::Uvrpc => uvrpc(results),
            Self::Fleetlm => fleetlm(results),
            Self::Limiter => limiter(results),
            Self::Chronik => chronik(results),
        }
    }
}
