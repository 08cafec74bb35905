//! Topics.

pub mod groups;
