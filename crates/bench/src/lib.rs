//! Model, statistics, measurement, reports and driver of `telpher bench`.
//!
//! All benchmarks use one engine. A workload sends messages; the engine counts them, times them,
//! measures their cost and writes the results. [`workload`] has the trait that a benchmark
//! implements, the driver that runs it, and what every benchmark starts: roles, nodes and peers as
//! processes of their own. The benchmarks themselves are crates above this one, a crate per subject.
//! This crate knows the names of agents, calls and topics but not their semantics, no client of any
//! protocol, and nothing of the inside of a node.
//!
//! # The path of a figure
//!
//! ```text
//!   worker        Tally ──┐ merged             Watch: CPU, memory, host
//!   worker        Tally ──┴─▸ Measurement ◂──────────┘
//!                                  │ checked, figures derived once
//!                                  ▾
//!   Suite::record ───────────▸    Run  ──▸ BENCHMARK_RESULT line
//!                                  │ all repeats
//!                                  ▾
//!   Suite::finish ───────────▸  Summary: mean, s², interval, CV, pooled percentiles, flags
//!                                  │
//!                                  ▾
//!   Results ──▸ results.json · results.tsv · Markdown · report.html · plots · hdr · terminal
//! ```
//!
//! Invariants: a figure that was not measured is absent and shows as `n/a`; a figure is derived in
//! one place; every histogram holds exactly the completed messages; every claim has an interval;
//! and a figure that may mislead has a [flag](flags).
//!
//! # A workload
//!
//! ```
//! use meter::clock::{Utc, now_ns};
//! use bench::model::{Area, Case, Environment, Mode, Setup};
//! use bench::output::Output;
//! use bench::process::{Role, Watch};
//! use bench::progress::{Progress, Show};
//! use bench::suite::Suite;
//! use bench::tally::Tally;
//! use bench::{plan, report};
//!
//! # let directory = tempfile::tempdir()?;
//! # let base = directory.path();
//! // The directory first: a full disk shows before the first message.
//! let output = Output::create(base, "squares", Utc::now())?;
//! let environment = Environment::gather(std::env::args()).version("telpher", "0.1.0");
//! let cases = [1, 8].map(|in_flight| {
//!     Case::new("squares", Area::Rpc, Mode::SERIAL).size(8).in_flight(in_flight)
//! });
//! let repeats = 3;
//! let progress = Progress::new(cases.len() as u32 * repeats, Show::Quiet);
//! let mut suite = Suite::new("squares", environment, Setup::default(), progress);
//!
//! for (position, _) in plan::interleaved(cases.len(), repeats) {
//!     let case = &cases[position];
//!     suite.starting(case);
//!     let watch = Watch::start(&[(Role::Sender, std::process::id())])?;
//!     let start_ns = now_ns();
//!     let mut tally = Tally::new(); // One per worker thread; merge them at the end.
//!     for number in 0..100u64 {
//!         let sent_ns = now_ns();
//!         tally.sent();
//!         std::hint::black_box(number * number);
//!         tally.answered(sent_ns, now_ns());
//!     }
//!     let mut measured = tally.over(now_ns() - start_ns);
//!     measured.usage = Some(watch.stop());
//!     suite.record(case, measured)?; // Prints the BENCHMARK_RESULT line.
//! }
//!
//! let results = suite.finish(); // Prints the MODE_SUMMARY lines.
//! output.write(&results)?;
//! println!("{}", report::terminal(&results));
//! # assert!(output.directory().join("report.html").exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! At a configured rate, a [`pacing::Schedule`] returns when each message is meant to leave; hand
//! it to the tally as a [`tally::Departure`]. A role in another process returns its
//! [`tally::Tally`] or [`measurement::Sink`] as JSON. For the capacity of a case,
//! [`suite::Suite::sweep`] returns which rate to run next. `examples/echo.rs` does all of this with
//! two processes and a socket.

pub mod compare;
pub mod flags;
pub mod format;
pub mod growth;
pub mod lines;
pub mod measurement;
pub mod model;
pub mod output;
pub mod pacing;
pub mod plan;
mod plot;
pub mod process;
pub mod progress;
pub mod report;
pub mod stats;
pub mod suite;
pub mod sweep;
pub mod tally;
pub mod workload;

#[cfg(test)]
mod fixture;
