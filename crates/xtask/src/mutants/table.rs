//! Table of the mutants and the proofs that must catch them.

mod cluster;
mod conversations;
mod journal;
mod mutant;

pub(super) use self::mutant::{Edit, Mutant, Subject};

/// Returns all mutants; those of one crate are adjacent.
pub(super) fn all() -> impl Iterator<Item = &'static Mutant> {
    let crates: [&[Mutant]; 3] = [
        &journal::MUTANTS,
        &conversations::MUTANTS,
        &cluster::MUTANTS,
    ];
    crates.into_iter().flatten()
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
