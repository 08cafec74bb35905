//! Comparison of the engine with published reports: every figure that follows from their runs is
//! computed again and compared.

mod slim_suite;
mod uvrpc;
