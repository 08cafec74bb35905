//! Table of the mutants and the proofs that must catch them.

mod cluster;
mod conversations;
mod journal;

/// A crate with mutants.
pub(super) struct Subject {
    /// Directory of the crate below `crates`.
    pub(super) folder: &'static str,
    /// Arguments of `cargo test` that select its proofs.
    pub(super) proofs: &'static [&'static str],
}

/// A mutant.
pub(super) struct Mutant {
    pub(super) name: &'static str,
    pub(super) subject: &'static Subject,
    /// Harm that the bug would cause.
    pub(super) harm: &'static str,
    pub(super) edits: &'static [Edit],
    /// Full name of the test that must fail.
    pub(super) proof: &'static str,
}

/// A replacement in a source file, whose text must occur there exactly once.
pub(super) struct Edit {
    /// Path below the crate's `src`.
    pub(super) file: &'static str,
    pub(super) text: &'static str,
    pub(super) replacement: &'static str,
}

/// Returns all mutants; those of one crate are adjacent.
pub(super) fn all() -> impl Iterator<Item = &'static Mutant> {
    let first = journal::MUTANTS.iter().chain(&conversations::MUTANTS);
    first.chain(&cluster::MUTANTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn every_edit_fits_the_source_in_one_place() {
        let crates = tree::root().unwrap().join("crates");
        for mutant in all() {
            let source = crates.join(mutant.subject.folder).join("src");
            for edit in mutant.edits {
                let text = std::fs::read_to_string(source.join(edit.file)).unwrap();
                let count = text.matches(edit.text).count();
                assert_eq!(count, 1, "{}: {}", mutant.name, edit.file);
            }
        }
    }

    #[test]
    fn every_proof_is_a_test_of_its_crate() {
        let crates = tree::root().unwrap().join("crates");
        for mutant in all() {
            let (module, test) = mutant.proof.rsplit_once("::").unwrap();
            let file = format!("{}.rs", module.rsplit("::").next().unwrap());
            let is_there = tree::files(&crates.join(mutant.subject.folder))
                .unwrap()
                .iter()
                .filter(|path| path.file_name().is_some_and(|name| *name == *file))
                .any(|path| {
                    let text = std::fs::read_to_string(path).unwrap();
                    text.contains(&format!("fn {test}("))
                });
            assert!(
                is_there,
                "{}: there is no test {}",
                mutant.name, mutant.proof
            );
        }
    }
}
