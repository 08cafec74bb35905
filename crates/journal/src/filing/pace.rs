//! Paces the zeroing of spares, so that it does not delay the line's syncs.
//!
//! A sync waits for other writes to the same device. Zeroing at full disk speed made the line's
//! syncs 2.5 times as long while it lasted; spread over the first half of a segment, it costs a
//! tenth.

/// Bytes zeroed per byte used of the active segment: a spare is ready when half of the segment is
/// used.
const PER_BYTE_USED: u64 = 2;

/// Bytes that are zeroed regardless of the line's progress.
const AHEAD_SIZE: u64 = 4 << 20;

/// Milliseconds without growth after which the line counts as idle, so that no sync waits behind
/// the zeros.
const REST_MS: u64 = 20;

/// Compares the progress of zeroing with that of the active segment.
#[derive(Debug, Default)]
pub(super) struct Pace {
    used: u64,
    grew_ms: u64,
    now_ms: u64,
}

impl Pace {
    /// Updates the used bytes of the active segment.
    pub(super) fn update(&mut self, used: u64, now_ms: u64) {
        self.now_ms = now_ms;
        if used != self.used {
            self.used = used;
            self.grew_ms = now_ms;
        }
    }

    /// Returns true if `zeroed` bytes of the spare are enough for now.
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
    fn spare_zeroing_finishes_before_half_of_the_segment_is_used() {
        let mut pace = Pace::default();
        for (used, zeroed, is_ahead) in [
            (1, 6, false),
            (1, 7, true),
            (31, 66, false),
            (32, 68, false),
        ] {
            pace.update(used * MIB, 1_000 + used);
            assert_eq!(pace.is_ahead(zeroed * MIB), is_ahead, "{used} {zeroed}");
        }
    }

    #[test]
    fn zeroing_is_not_paced_while_the_line_is_idle() {
        let mut pace = Pace::default();
        pace.update(MIB, 1_000);
        pace.update(MIB, 1_000 + REST_MS - 1);
        assert!(pace.is_ahead(60 * MIB));
        pace.update(MIB, 1_000 + REST_MS);
        assert!(!pace.is_ahead(60 * MIB));
        pace.update(2 * MIB, 1_001 + REST_MS);
        assert!(pace.is_ahead(60 * MIB));
    }
}
