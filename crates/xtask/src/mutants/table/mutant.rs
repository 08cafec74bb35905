//! Mutants: replacements in the source of a crate, and the proof that must notice them.

/// A crate with mutants.
pub(crate) struct Subject {
    /// Directory of the crate below `crates`.
    pub(crate) folder: &'static str,
    /// Arguments of `cargo test` that select its proofs.
    pub(crate) proofs: &'static [&'static str],
}

/// A mutant.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    pub(crate) subject: &'static Subject,
    /// Harm that the bug would cause.
    pub(crate) harm: &'static str,
    pub(crate) edits: &'static [Edit],
    /// Full name of the test that must fail.
    pub(crate) proof: &'static str,
}

/// A replacement in a source file, whose text must occur there exactly once.
pub(crate) struct Edit {
    /// Path below the crate's `src`.
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
    pub(crate) replacement: &'static str,
}
