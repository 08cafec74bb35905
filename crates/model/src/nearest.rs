//! The valid word nearest to a mistyped one, for "did you mean" hints.

/// Returns the candidate with the fewest edits to `word`, regardless of case, if it is a likely
/// misspelling: the edits are at most a third of the length of the longer word.
///
/// The distance is Damerau's (optimal string alignment): insertion, deletion, substitution and
/// the swap of two neighbours each count one. Words above 256 bytes are not compared.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LENGTH_MAX && word.len() <= LENGTH_MAX)
        .map(|candidate| (edits(word, candidate), candidate))
        .filter(|(edits, candidate)| *edits * 3 <= word.len().max(candidate.len()).max(3))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Words longer than this are not compared, because the cost grows with the product of the lengths.
const LENGTH_MAX: usize = 256;

fn edits(left: &str, right: &str) -> usize {
    strsim::osa_distance(&left.to_ascii_lowercase(), &right.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelling_finds_its_word_and_nonsense_none() {
        let words = ["echo.echo", "echo.reverse", "add"];
        assert_eq!(nearest("eco.echo", words), Some("echo.echo"));
        assert_eq!(nearest("ehco.echo", words), Some("echo.echo"));
        assert_eq!(nearest("ad", words), Some("add"));
        assert_eq!(nearest("completely-different", words), None);
        assert_eq!(nearest("x", []), None);
    }
}
