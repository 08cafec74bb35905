//! Growth of one node: its cost as the number of items it holds grows in steps of ten.
//!
//! An item is a connection, topic, consumer group, mailbox, conversation or bucket. Every step has a
//! node of its own: memory is read when the node has come to rest, then a short closed loop of
//! messages is spread over all items. The write-ahead log grows in bytes instead: after each step
//! the node is killed and started.
//!
//! Invariant: *a figure that was not measured is absent, and a step that was left out says why.*

use serde::{Deserialize, Serialize};

use crate::flags::Flag;
use crate::format::thousands;
use crate::model::Environment;
use crate::plot;
use crate::report::Table;
use crate::stats::{Description, describe};

/// A kind of item, or the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// Client connections over the native protocol; the messages are appended to conversations.
    Connections,
    /// Topics of one partition; a message is a record.
    Topics,
    /// Consumer groups; a message is a commit of one offset.
    Groups,
    /// Mailboxes; a message is a durable write.
    Mailboxes,
    /// Conversations; a message is appended.
    Conversations,
    /// Quota buckets; a message is a take.
    Buckets,
    /// Bytes of the write-ahead log.
    Log,
}

impl Dimension {
    /// All dimensions in the order of the reports.
    pub const ALL: [Self; 7] = [
        Self::Connections,
        Self::Topics,
        Self::Groups,
        Self::Mailboxes,
        Self::Conversations,
        Self::Buckets,
        Self::Log,
    ];

    /// Returns the name in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Topics => "topics",
            Self::Groups => "groups",
            Self::Mailboxes => "mailboxes",
            Self::Conversations => "conversations",
            Self::Buckets => "buckets",
            Self::Log => "log",
        }
    }

    /// Returns the highest step of the published curves: a number of items, or of gigabytes.
    #[must_use]
    pub fn published_max(self) -> u64 {
        match self {
            Self::Connections => 10_000,
            Self::Topics | Self::Groups | Self::Mailboxes => 100_000,
            Self::Conversations | Self::Buckets => 1_000_000,
            Self::Log => 20,
        }
    }
}

/// Curves of one node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Growth {
    /// Machine, versions and command.
    pub environment: Environment,
    /// Memory of a node without items.
    pub empty_rss_bytes: u64,
    /// Messages in flight.
    pub in_flight: u32,
    /// A curve for each kind of item.
    pub curves: Vec<Curve>,
    /// Steps of the log.
    pub log: Vec<LogPoint>,
    /// Steps that were left out.
    pub left_out: Vec<LeftOut>,
}

/// Steps of one kind of item.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Curve {
    /// The kind of item.
    pub of: Dimension,
    /// Measured steps, in ascending order.
    pub points: Vec<Point>,
}

/// A step: a node with a number of items.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Number of items.
    pub items: u64,
    /// Time to create them, in seconds.
    pub make_seconds: f64,
    /// Memory of the node with all items, at rest.
    pub rss_bytes: u64,
    /// Messages per second of each repeat.
    pub rates: Vec<f64>,
    /// CPU time of the node per message of each repeat, in microseconds.
    pub cpu_us: Vec<f64>,
    /// Reasons to read the step with care.
    pub flags: Vec<Flag>,
}

/// A step of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogPoint {
    /// Bytes of all messages in the log.
    pub bytes: u64,
    /// CPU time of the node per message of 4 KiB that was written in this step, in microseconds.
    pub cpu_us: f64,
    /// Time from the start of the process after `kill -9` until its listeners were open.
    pub start_ms: f64,
    /// Time of the first fetch, which is at the beginning of the log.
    pub read_begin_ms: f64,
    /// Time of the first fetch at the end of the log.
    pub read_end_ms: f64,
    /// Time from the start until compaction had nothing left to do; absent if it had nothing to do.
    pub compaction_ms: Option<f64>,
    /// Memory of the node after compaction, at rest.
    pub rss_bytes: u64,
    /// Bytes of the node's files after compaction.
    pub disk_bytes: u64,
    /// Reasons to read the step with care.
    pub flags: Vec<Flag>,
}

/// A step that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The dimension.
    pub of: Dimension,
    /// The step: a number of items, or of gigabytes.
    pub step: u64,
    /// Reason, with the limit that stands in the way.
    pub reason: String,
}

/// A picture of the curves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// File name.
    pub file: String,
    /// Title.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// The file.
    pub svg: String,
}

/// Smallest growth of memory that is told from the noise of an idle node.
const NOISE_BYTES: u64 = 1 << 20;

impl Point {
    /// Describes the rate over the repeats, in messages per second.
    #[must_use]
    pub fn rate(&self) -> Option<Description> {
        describe(&self.rates)
    }

    /// Describes the CPU time of the node per message over the repeats, in microseconds.
    #[must_use]
    pub fn cpu(&self) -> Option<Description> {
        describe(&self.cpu_us)
    }

    /// Returns the memory per item: the growth from an empty node, shared by all items. `None` where
    /// the growth is below the noise.
    #[must_use]
    pub fn bytes_each(&self, empty_rss_bytes: u64) -> Option<f64> {
        let growth = self.rss_bytes.checked_sub(empty_rss_bytes)?;
        (growth >= NOISE_BYTES).then(|| growth as f64 / self.items.max(1) as f64)
    }
}

impl Curve {
    /// Returns the ratio of a figure at the last step to that at the first one.
    fn ratio(&self, figure: impl Fn(&Point) -> Option<Description>) -> Option<f64> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        let first = figure(first)?.mean;
        (first > 0.0).then_some(figure(last)?.mean / first)
    }
}

impl Growth {
    /// Adds a step that was not measured, with the reason.
    pub fn leave_out(&mut self, of: Dimension, step: u64, reason: impl Into<String>) {
        self.left_out.push(LeftOut {
            of,
            step,
            reason: reason.into(),
        });
    }

    /// Parses a result.
    ///
    /// # Errors
    /// When the text is not a result of this version.
    pub fn from_json(text: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }

    /// Returns the table of the last step of each curve, compared with its first.
    #[must_use]
    pub fn items_table(&self) -> Table {
        let heads = [
            "items",
            "memory per item",
            "CPU per message",
            "CPU, × first step",
            "rate, × first step",
            "flags",
        ];
        let mut table = Table::new(heads, 1);
        for curve in &self.curves {
            let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else {
                continue;
            };
            let each = last.bytes_each(self.empty_rss_bytes);
            table.row([
                Some(format!(
                    "{} to {} {}",
                    whole(first.items),
                    whole(last.items),
                    curve.of.name()
                )),
                each.map(size),
                last.cpu()
                    .map(|cpu| format!("{} µs", two_figures(cpu.mean))),
                curve.ratio(Point::cpu).map(times),
                curve.ratio(Point::rate).map(times),
                Some(flag_names(curve.points.iter().map(|point| &point.flags))),
            ]);
        }
        table
    }

    /// Returns the table of the log's steps, compared with its first.
    #[must_use]
    pub fn log_table(&self) -> Table {
        let heads = [
            "log",
            "start after `kill -9`",
            "first read at the beginning",
            "first read at the end",
            "compaction",
            "CPU per message",
            "disk per byte",
            "flags",
        ];
        let mut table = Table::new(heads, 1);
        let Some(first) = self.log.first() else {
            return table;
        };
        for point in &self.log {
            let ratio = |figure: fn(&LogPoint) -> Option<f64>| {
                let base = figure(first).filter(|base| *base > 0.0)?;
                Some(times(figure(point)? / base))
            };
            table.row([
                Some(size(point.bytes as f64)),
                ratio(|point| Some(point.start_ms)),
                ratio(|point| Some(point.read_begin_ms)),
                ratio(|point| Some(point.read_end_ms)),
                ratio(|point| point.compaction_ms),
                Some(format!("{} µs", two_figures(point.cpu_us))),
                Some(times(point.disk_bytes as f64 / point.bytes.max(1) as f64)),
                Some(flag_names(std::iter::once(&point.flags))),
            ]);
        }
        table
    }

    /// Returns the steps that were left out as a list in Markdown; empty without any.
    #[must_use]
    pub fn left_out_list(&self) -> String {
        let line = |one: &LeftOut| {
            let unit = match one.of {
                Dimension::Log => "GB of log",
                items => items.name(),
            };
            format!("- {} {unit}: {}\n", whole(one.step), one.reason)
        };
        let lines: String = self.left_out.iter().map(line).collect();
        match lines.is_empty() {
            true => lines,
            false => format!("Left out:\n\n{lines}"),
        }
    }

    /// Returns the report as a page in Markdown, without its title.
    #[must_use]
    pub fn markdown(&self) -> String {
        let facts = self.environment.facts();
        let facts: String = facts
            .iter()
            .map(|(name, value)| format!("- {name}: {value}\n"))
            .collect();
        let parts = [
            self.items_table().markdown(),
            self.log_table().markdown(),
            self.left_out_list(),
            facts,
        ];
        let parts: Vec<_> = parts.iter().map(|part| part.trim_end()).collect();
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}\n", parts.join("\n\n"))
    }

    /// Returns the report for a terminal.
    #[must_use]
    pub fn terminal(&self) -> String {
        let tables = [self.items_table(), self.log_table()];
        let tables = tables.iter().filter(|table| !table.is_empty());
        let tables: Vec<_> = tables.map(Table::terminal).collect();
        let left_out = self.left_out_list();
        format!("{}\n{left_out}", tables.join("\n"))
    }

    /// Draws the pictures for which there are figures.
    #[must_use]
    pub fn pictures(&self) -> Vec<Picture> {
        let plots = plot::growth(self);
        let picture = |plot: plot::Plot| Picture {
            file: format!("{}.svg", plot.name),
            svg: plot.standalone(),
            title: plot.title,
            caption: plot.caption,
        };
        plots.into_iter().map(picture).collect()
    }

    /// Returns each raised flag with the step that raised it.
    #[must_use]
    pub fn flagged(&self) -> Vec<String> {
        let items = self.curves.iter().flat_map(|curve| {
            let points = curve.points.iter();
            points.map(|point| (curve.of, point.items, &point.flags))
        });
        let log = self.log.iter();
        let log = log.map(|point| (Dimension::Log, point.bytes / GIGABYTE, &point.flags));
        let flagged = items.chain(log).filter(|(.., flags)| !flags.is_empty());
        let words = |(of, step, flags): (Dimension, u64, &Vec<Flag>)| {
            format!(
                "{} {}: {}",
                of.name(),
                whole(step),
                flag_names(std::iter::once(flags))
            )
        };
        flagged.map(words).collect()
    }
}

/// Bytes in a step of the log.
pub const GIGABYTE: u64 = 1_000_000_000;

/// Names each flag once, in the order of the reports.
fn flag_names<'a>(points: impl Iterator<Item = &'a Vec<Flag>> + Clone) -> String {
    let is_raised = |flag: &&Flag| points.clone().any(|flags| flags.contains(flag));
    let raised = Flag::ALL.iter().filter(is_raised);
    let names: Vec<_> = raised.map(|flag| flag.name()).collect();
    names.join(", ")
}

fn times(ratio: f64) -> String {
    format!("{} ×", two_figures(ratio))
}

/// Formats a number with two significant figures, or as an integer from 100.
fn two_figures(value: f64) -> String {
    let decimals = |value: f64| (1 - value.abs().max(1e-9).log10().floor() as i32).max(0) as usize;
    format!("{value:.*}", decimals(value))
}

/// Formats an integer with commas.
fn whole(value: u64) -> String {
    thousands(value as f64, 0)
}

/// Formats a size in decimal units: `512 B`, `2.1 KB`, `20 GB`.
pub(crate) fn size(bytes: f64) -> String {
    let (scale, unit) = match bytes.abs() {
        size if size >= 1e9 => (1e9, "GB"),
        size if size >= 1e6 => (1e6, "MB"),
        size if size >= 1e3 => (1e3, "KB"),
        _ => (1.0, "B"),
    };
    let value = bytes / scale;
    match value.fract().abs() < 0.005 || value >= 100.0 {
        true => format!("{value:.0} {unit}"),
        false => format!("{value:.1} {unit}"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
