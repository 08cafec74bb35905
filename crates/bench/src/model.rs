//! Data model of a benchmark: cases, runs, summaries and the results that hold them.
//!
//! All types are plain data; `layout` writes and reads them as `results.json`. A [`Case`] is a
//! combination of parameters, a [`Run`] is one repeat of it, and a [`Summary`] describes all its
//! repeats. A figure that was not measured is absent from [`Metrics`].

mod case;
mod environment;
mod layout;
mod metric;
mod mode;
mod results;
mod run;
mod summary;

pub use case::Case;
pub use environment::Environment;
pub use layout::{ReadError, SCHEMA_VERSION};
pub use metric::{Metric, Metrics, Unit};
pub use mode::{Area, CountedBy, Mode};
pub use results::{CaseComparison, CaseResult, Results, Setup, SweepResult, SweepStep};
pub use run::Run;
pub(crate) use summary::pool;
pub use summary::{PooledLatency, Summary};
