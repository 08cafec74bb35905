//! Comparison of the engine with published reports: every figure that follows from their runs is
//! computed again and compared. The figures that this project publishes are made here too.

mod published;
mod slim_suite;
mod uvrpc;
