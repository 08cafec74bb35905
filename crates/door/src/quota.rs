//! Error texts about quotas.

/// The error for a client that settles a hold of another token.
pub const FOREIGN_HOLD: &str =
    "the hold belongs to another token: only that one and administrators may settle it";
