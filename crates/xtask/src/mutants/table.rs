//! What is broken, and who must notice.

mod journal;
mod node;

/// The crate that is broken.
pub(super) struct Subject {
    /// Below `crates`.
    pub(super) folder: &'static str,
    /// What tells `cargo test` which of its tests are proofs.
    pub(super) proofs: &'static [&'static str],
}

/// One way to break it.
pub(super) struct Mutant {
    pub(super) name: &'static str,
    pub(super) subject: &'static Subject,
    /// Why it would be a disaster.
    pub(super) harm: &'static str,
    pub(super) edits: &'static [Edit],
    /// The test that fails, by its full name.
    pub(super) proof: &'static str,
}

/// A change of a source file's text, which must stand there exactly once.
pub(super) struct Edit {
    /// Below the crate's `src`.
    pub(super) file: &'static str,
    pub(super) text: &'static str,
    pub(super) replacement: &'static str,
}

/// All of them; those of one crate stand together.
pub(super) fn all() -> impl Iterator<Item = &'static Mutant> {
    journal::MUTANTS.iter().chain(&node::MUTANTS)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_edit_fits_the_source_in_one_place() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for mutant in all() {
            let source = crates.join(mutant.subject.folder).join("src");
            for edit in mutant.edits {
                let text = std::fs::read_to_string(source.join(edit.file)).unwrap();
                let count = text.matches(edit.text).count();
                assert_eq!(count, 1, "{}: {}", mutant.name, edit.file);
            }
        }
    }
}
