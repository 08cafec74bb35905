//! The window: what of a conversation a model is shown.

mod policy;

pub use policy::{KEPT_ROLES_MAX, Kinds, Policy, Strategy};
