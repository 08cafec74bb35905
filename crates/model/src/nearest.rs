//! Spelling suggestions: finds the valid word that is nearest to an invalid one.

/// Returns the candidate with the fewest edits to `word`, if it is a likely misspelling: at most a
/// third of the longer word, and at least one letter in common.
///
/// The distance is Damerau's (optimal string alignment): an insertion, a deletion, a substitution
/// and a swap of two neighbours each count one.
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
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let width = right.len() + 1;
    let mut before_last = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    let mut row = vec![0; width];
    for (i, l) in left.iter().enumerate() {
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let substituted = last[j] + usize::from(!l.eq_ignore_ascii_case(r));
            row[j + 1] = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            let swapped = i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r;
            if swapped {
                row[j + 1] = row[j + 1].min(before_last[j - 1] + 1);
            }
        }
        std::mem::swap(&mut before_last, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    last[right.len()]
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
