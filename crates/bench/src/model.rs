//! The words of a benchmark: cases, runs, summaries and the results that hold them.
//!
//! Everything here is data with serde derives; it is what `results.json` holds. A [`Case`] says what is
//! run, a [`Run`] is one repeat of it, a [`Summary`] is what all repeats say together. No figure is
//! ever invented: one that was not measured is absent from [`Metrics`].

mod case;
mod environment;
mod metric;
mod mode;
mod results;
mod run;
mod summary;

pub use case::Case;
pub use environment::Environment;
pub use metric::{Metric, Metrics, Unit};
pub use mode::{Area, CountedBy, Mode};
pub use results::{
    CaseComparison, CaseResult, ReadError, Results, SCHEMA_VERSION, Setup, SweepResult, SweepStep,
};
pub use run::Run;
pub(crate) use summary::pool;
pub use summary::{Pooled, Summary};
