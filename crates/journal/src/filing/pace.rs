//! How fast spares are zeroed: a line that is written to is not held up by more of it than it needs.
//!
//! A sync waits for whatever else is on its way to the device. Zeroing as fast as the disk can made
//! the line's syncs two and a half times as long for as long as it took; spread over the first half
//! of a segment it costs a tenth.

/// Of the active segment's bytes: a spare is ready when half of it is used.
const PER_BYTE_USED: u64 = 2;

/// Zeroed whatever the line does.
const AHEAD_SIZE: u64 = 4 << 20;

/// A line that has not grown for so long rests, and nobody waits behind the zeros.
const REST_MS: u64 = 20;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Pace {
    used: u64,
    grew_ms: u64,
    now_ms: u64,
}

impl Pace {
    /// So many bytes of the active segment are used now.
    pub(super) fn look(&mut self, used: u64, now_ms: u64) {
        self.now_ms = now_ms;
        if used != self.used {
            self.used = used;
            self.grew_ms = now_ms;
        }
    }

    /// Whether that much of a spare is enough for now.
    pub(super) fn is_ahead(&self, zeroed: u64) -> bool {
        let rests = self.now_ms.saturating_sub(self.grew_ms) >= REST_MS;
        !rests && zeroed > PER_BYTE_USED * self.used + AHEAD_SIZE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn while_the_line_grows_a_spare_is_ready_when_half_of_the_segment_is_used() {
        let mut pace = Pace::default();
        for (used, zeroed, is_ahead) in [
            (1, 6, false),
            (1, 7, true),
            (31, 66, false),
            (32, 68, false),
        ] {
            pace.look(used * MIB, 1_000 + used);
            assert_eq!(pace.is_ahead(zeroed * MIB), is_ahead, "{used} {zeroed}");
        }
    }

    #[test]
    fn while_the_line_rests_nothing_is_held_back() {
        let mut pace = Pace::default();
        pace.look(MIB, 1_000);
        pace.look(MIB, 1_000 + REST_MS - 1);
        assert!(pace.is_ahead(60 * MIB));
        pace.look(MIB, 1_000 + REST_MS);
        assert!(!pace.is_ahead(60 * MIB));
        pace.look(2 * MIB, 1_001 + REST_MS);
        assert!(pace.is_ahead(60 * MIB));
    }
}
