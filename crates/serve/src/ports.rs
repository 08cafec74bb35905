//! The node's ports to the real system: clocks and random numbers.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use platform::{Clock, Entropy, Ports};
use ring::rand::{SecureRandom, SystemRandom};

/// Returns the system's clock and random numbers.
pub(super) fn real() -> Ports {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the port through which time enters"
    )]
    let start = Instant::now();
    Ports {
        clock: Arc::new(SystemClock { start }),
        entropy: Arc::new(SystemEntropy),
    }
}

struct SystemClock {
    start: Instant,
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        // Saturates after 584 years.
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn unix_ms(&self) -> u64 {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the port through which time enters"
        )]
        let now = SystemTime::now();
        now.duration_since(UNIX_EPOCH).map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }
}

/// The system's secure random generator, buffered.
struct SystemEntropy;

const BUFFER_SIZE: usize = 512;

thread_local! {
    /// Random bytes, and the number of used ones.
    static BUFFER: RefCell<([u8; BUFFER_SIZE], usize)> =
        const { RefCell::new(([0; BUFFER_SIZE], BUFFER_SIZE)) };
}

impl Entropy for SystemEntropy {
    fn next_u64(&self) -> u64 {
        BUFFER.with_borrow_mut(|(bytes, used)| {
            if *used == BUFFER_SIZE {
                // Without random bytes, ids that act as secrets could be guessed.
                SystemRandom::new()
                    .fill(bytes)
                    .expect("the system gives random bytes");
                *used = 0;
            }
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[*used..*used + 8]);
            bytes[*used..*used + 8].fill(0);
            *used += 8;
            u64::from_le_bytes(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn system_entropy_numbers_do_not_repeat() {
        let numbers: BTreeSet<u64> = (0..1_000).map(|_| SystemEntropy.next_u64()).collect();
        assert_eq!(numbers.len(), 1_000);
    }
}
