//! The position of a watcher in a conversation: sent as the `id:` of an event, and returned as
//! `Last-Event-ID`.
//!
//! ```text
//! SEQ[:DRAFT.CHUNK[,DRAFT.CHUNK…]]
//! ```
//!
//! The watcher has seen every message up to and including `SEQ`, and the chunks of each named draft
//! up to and including `CHUNK`. It has seen no chunks of other drafts.

use std::fmt;
use std::str::FromStr;

/// Maximum number of drafts in a position.
pub const DRAFTS_MAX: usize = 32;

/// The position of a watcher; see the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The newest message seen; 0 for none.
    pub seq: u64,
    /// The drafts with chunks seen, each once, at most [`DRAFTS_MAX`].
    pub drafts: Vec<DraftPosition>,
}

/// The position of a watcher in a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftPosition {
    /// The draft's number.
    pub draft: u64,
    /// The newest chunk seen.
    pub chunk: u32,
}

/// A text that is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid position: use SEQ or SEQ:DRAFT.CHUNK,… with at most {DRAFTS_MAX} drafts, each once"
)]
pub struct Malformed;

impl Position {
    /// Returns the first unseen chunk of a draft.
    pub fn next_chunk(&self, draft: u64) -> u32 {
        let seen = self.drafts.iter().find(|it| it.draft == draft);
        seen.map_or(0, |it| it.chunk.saturating_add(1))
    }

    /// Records that a chunk was seen. If there are too many drafts, the one named first is dropped:
    /// its chunks are shown again from the first.
    pub fn see(&mut self, draft: u64, chunk: u32) {
        match self.drafts.iter_mut().find(|it| it.draft == draft) {
            Some(seen) => seen.chunk = chunk,
            None => {
                if self.drafts.len() == DRAFTS_MAX {
                    self.drafts.remove(0);
                }
                self.drafts.push(DraftPosition { draft, chunk });
            }
        }
    }

    /// Removes a draft that ended: its message contains all of it.
    pub fn forget(&mut self, draft: u64) {
        self.drafts.retain(|it| it.draft != draft);
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seq)?;
        for (index, DraftPosition { draft, chunk }) in self.drafts.iter().enumerate() {
            let before = if index == 0 { ':' } else { ',' };
            write!(f, "{before}{draft}.{chunk}")?;
        }
        Ok(())
    }
}

impl FromStr for Position {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (seq, drafts) = match text.split_once(':') {
            Some((seq, drafts)) => (seq, Some(drafts)),
            None => (text, None),
        };
        let mut position = Self {
            seq: number(seq)?,
            drafts: Vec::new(),
        };
        for seen in drafts.into_iter().flat_map(|it| it.split(',')) {
            let (draft, chunk) = seen.split_once('.').ok_or(Malformed)?;
            let (draft, chunk) = (number(draft)?, number(chunk)?);
            let chunk = u32::try_from(chunk).map_err(|_| Malformed)?;
            let is_named = position.drafts.iter().any(|it| it.draft == draft);
            if is_named || position.drafts.len() == DRAFTS_MAX {
                return Err(Malformed);
            }
            position.drafts.push(DraftPosition { draft, chunk });
        }
        Ok(position)
    }
}

/// Parses a number that consists of digits only.
fn number(text: &str) -> Result<u64, Malformed> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().map_err(|_| Malformed),
        false => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_position_holds_a_sequence_and_a_chunk_per_draft() {
        let position: Position = "42:7.30,9.0".parse().unwrap();
        assert_eq!(position.seq, 42);
        assert_eq!((position.next_chunk(7), position.next_chunk(9)), (31, 1));
        assert_eq!(position.next_chunk(8), 0);
        assert_eq!(position.to_string(), "42:7.30,9.0");
        assert_eq!("0".parse(), Ok(Position::default()));
    }

    #[test]
    fn invalid_positions_are_refused() {
        let texts = [
            "",
            "-1",
            "+1",
            " 1",
            "1 ",
            "1:",
            "1:2",
            "1:2.",
            "1:.2",
            "1:2.3,",
            "1:2.3,2.4",
            "1:2.4294967296",
            "18446744073709551616",
            "1:2.3:4.5",
            "1.2",
            "x",
        ];
        for text in texts {
            assert_eq!(text.parse::<Position>(), Err(Malformed), "{text}");
        }
        let many: Vec<_> = (0..=DRAFTS_MAX).map(|it| format!("{it}.0")).collect();
        assert!(format!("1:{}", many.join(",")).parse::<Position>().is_err());
        assert!(
            format!("1:{}", many[1..].join(","))
                .parse::<Position>()
                .is_ok()
        );
    }

    #[test]
    fn a_position_names_at_most_the_maximum_of_drafts() {
        let mut position = Position::default();
        for draft in 0..100 {
            position.see(draft, 1);
            position.see(draft, 2);
        }
        assert_eq!(position.drafts.len(), DRAFTS_MAX);
        assert_eq!((position.next_chunk(99), position.next_chunk(0)), (3, 0));
        position.forget(99);
        assert_eq!(position.next_chunk(99), 0);
        assert!(position.to_string().parse::<Position>().is_ok());
    }

    proptest! {
        #[test]
        fn a_position_survives_formatting_and_parsing(
            seq: u64,
            drafts in prop::collection::btree_map(any::<u64>(), any::<u32>(), 0..DRAFTS_MAX),
        ) {
            let drafts = drafts.into_iter().map(|(draft, chunk)| DraftPosition { draft, chunk });
            let position = Position { seq, drafts: drafts.collect() };
            prop_assert_eq!(position.to_string().parse(), Ok(position));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "[0-9:.,]{0,40}|.{0,40}") {
            if let Ok(position) = text.parse::<Position>() {
                let again = position.to_string().parse();
                prop_assert_eq!(again, Ok(position));
            }
        }
    }
}
