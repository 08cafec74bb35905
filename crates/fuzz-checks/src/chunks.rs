//! Streamed answers from any body in any pieces: the same chunks come out, nothing panics, and the
//! assembled message stays within its limits.

use message_json::chunks::{Assembly, Framing, Sizes, Splitter, TooLong};

const SIZES: Sizes = Sizes {
    parts_max: 2048,
    metadata_max: 256,
};

/// Checks one input.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let [first, second, body @ ..] = input else {
        return;
    };
    let framing = if first % 2 == 0 {
        Framing::Lines
    } else {
        Framing::Events
    };
    let whole = split(framing, body, body.len().max(1));
    let pieces = split(framing, body, usize::from(*second).max(1));
    assert_eq!(whole, pieces, "pieces of {second}");
    let mut assembly = Assembly::new(SIZES);
    for chunk in whole.iter().flatten() {
        let Ok(text) = std::str::from_utf8(chunk) else {
            continue;
        };
        let before = assembly.message();
        if assembly.push(text).is_err() {
            assert_eq!(assembly.message(), before);
        }
        let message = assembly.message();
        assert!(message.parts.len() <= SIZES.parts_max);
        assert!(message.metadata.len() <= SIZES.metadata_max);
    }
}

fn split(framing: Framing, body: &[u8], size: usize) -> Result<Vec<Vec<u8>>, TooLong> {
    let mut splitter = Splitter::new(framing, 512);
    let mut documents = Vec::new();
    let mut each = |document: &[u8]| {
        documents.push(document.to_vec());
        Ok(())
    };
    for piece in body.chunks(size) {
        splitter.feed(piece, &mut each)?;
    }
    splitter.finish(&mut each)?;
    Ok(documents)
}
