//! Topics.
