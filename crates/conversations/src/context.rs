//! The window: what of a conversation a model is shown.

mod policy;

pub use policy::{Kinds, Policy, PolicyProblem, STEP_PERMILLE_MAX, Strategy};
