//! The engine against reports that others made: every figure of theirs that follows from their own runs
//! is computed again and compared.

mod slim_suite;
mod uvrpc;
