//! Pauses of this process: a stopped process, a suspended machine, or no processor time.
//!
//! At the end of a pause a node has not heard its leader for long, though the leader's messages may
//! only be unread. Until they had time to arrive it neither begins an election nor supports one. So a
//! pause of all members, such as that of the machine below them, does not depose the leader.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// Interval of the ticks by which pauses are recognized.
const TICK: Duration = Duration::from_millis(100);

/// Time without a tick that counts as a pause. A leader's lease is not much longer.
const PAUSE_MIN: Duration = Duration::from_millis(400);

/// Time after a pause within which a leader's heartbeat arrives: they are 100 ms apart.
const RECOVERY: Duration = Duration::from_millis(300);

/// The pauses of this process.
pub(crate) struct Pauses(Mutex<Ticks>);

struct Ticks {
    last: Instant,
    /// End of the last pause.
    resumed: Option<Instant>,
}

impl Pauses {
    /// Creates the pauses of a process that had none.
    pub(crate) fn new() -> Arc<Pauses> {
        Arc::new(Pauses(Mutex::new(Ticks {
            last: Instant::now(),
            resumed: None,
        })))
    }

    /// Ticks for ever.
    pub(crate) async fn tick_for_ever(self: Arc<Self>) {
        loop {
            sleep(TICK).await;
            self.0.lock().tick(Instant::now());
        }
    }

    /// Returns whether a pause has ended so recently that a leader may seem to be gone.
    pub(crate) fn has_just_ended(&self) -> bool {
        self.0.lock().has_just_ended(Instant::now())
    }
}

impl Ticks {
    fn tick(&mut self, now: Instant) {
        if now.duration_since(self.last) >= PAUSE_MIN {
            self.resumed = Some(now);
        }
        self.last = now;
    }

    fn has_just_ended(&self, now: Instant) -> bool {
        // The first tick after a pause may come after an election timer.
        let is_unnoticed = now.duration_since(self.last) >= PAUSE_MIN;
        let is_recent = |resumed| now.duration_since(resumed) < RECOVERY;
        is_unnoticed || self.resumed.is_some_and(is_recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_noticed_before_and_after_its_first_tick() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut ticks = Ticks {
            last: start,
            resumed: None,
        };
        for ms in [100, 200, 350, 600] {
            assert!(!ticks.has_just_ended(at(ms)), "{ms}");
            ticks.tick(at(ms));
        }
        assert!(!ticks.has_just_ended(at(999)));
        assert!(ticks.has_just_ended(at(1_000)), "no tick for 400 ms");
        ticks.tick(at(2_600));
        assert!(ticks.has_just_ended(at(2_899)));
        ticks.tick(at(2_700));
        ticks.tick(at(2_800));
        ticks.tick(at(2_900));
        assert!(!ticks.has_just_ended(at(2_900)));
    }
}
