//! The workloads, statistics, measurement and reports of `telpher bench`.
//!
//! One engine under every benchmark. A [workload] sends messages; everything else counts, times and
//! weighs what it did, and writes it down. The engine knows nothing of agents, calls or topics beyond
//! their names, and starts no process; the workloads know clients, peers and processes, and compute no
//! figure. Nobody here knows the inside of a node.
//!
//! # The way of a number
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
//! Invariants: a figure that was not measured is absent and shows as `n/a`; a figure is derived in one
//! place; every histogram holds exactly what was completed; nothing is claimed without an interval, and
//! where a number does not mean what it seems, a [flag](flags) stands beside it.
//!
//! # A workload
//!
//! ```
//! use bench::clock::{Utc, now_ns};
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
//! // The directory first: a full disk is known before the first message.
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
//! At a configured rate, ask a [`pacing::Schedule`] when each message is meant to leave and hand the
//! tally a [`tally::Departure`]. A role in another process sends its [`tally::Tally`] or
//! [`measurement::Sink`] home as JSON. For the capacity of a case, let [`suite::Suite::sweep`] say which
//! rate to run next. `examples/echo.rs` does all of it with two processes and a socket.

pub mod clock;
pub mod compare;
pub mod flags;
mod format;
pub mod histogram;
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
