//! A disk that does not answer: the leader that waits for it acknowledges nothing, while the others
//! could.

use std::time::Duration;

use journal::{Index, Journal, ShardId, Stage};
use tokio::time::{Instant, sleep};

/// Time for which no waiting block was synced after which a disk counts as stalled.
const STALL_MAX: Duration = Duration::from_secs(2);

/// Interval of looks at the disk.
const POLL: Duration = Duration::from_millis(100);

/// Waits until the disk of a journal has stalled.
pub async fn stall(journal: &Journal) {
    let mut watch = StallWatch::new(Instant::now());
    loop {
        sleep(POLL).await;
        let shards = (0..journal.shard_count()).map(ShardId);
        let written = shards.clone().map(|it| journal.last(it, Stage::Written));
        let taken = shards.map(|it| journal.last_taken(it).index);
        let (written, taken): (Vec<_>, Vec<_>) = (written.collect(), taken.collect());
        if watch.is_stalled(Instant::now(), written, &taken) {
            return;
        }
    }
}

/// Recognises a disk that stands still.
struct StallWatch {
    /// Time of the last progress, or of the last look at which nothing waited.
    moved: Instant,
    /// The last synced block of each shard.
    written: Vec<Index>,
}

impl StallWatch {
    fn new(now: Instant) -> StallWatch {
        StallWatch {
            moved: now,
            written: Vec::new(),
        }
    }

    /// Looks at the last synced and the last taken block of each shard.
    fn is_stalled(&mut self, now: Instant, written: Vec<Index>, taken: &[Index]) -> bool {
        if written == taken || written != self.written {
            self.moved = now;
        }
        self.written = written;
        now.duration_since(self.moved) >= STALL_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_stalled_when_blocks_wait_and_none_is_synced() {
        let start = Instant::now();
        let mut watch = StallWatch::new(start);
        let mut look = |ms, written: &[u64], taken: &[u64]| {
            let indexes = |of: &[u64]| of.iter().copied().map(Index).collect::<Vec<_>>();
            let now = start + Duration::from_millis(ms);
            watch.is_stalled(now, indexes(written), &indexes(taken))
        };
        assert!(!look(0, &[5, 7], &[5, 7]));
        assert!(!look(60_000, &[5, 7], &[5, 7]), "nothing waits");
        assert!(!look(60_100, &[5, 7], &[5, 8]));
        assert!(!look(61_900, &[5, 7], &[6, 9]));
        assert!(look(62_000, &[5, 7], &[6, 9]), "two seconds without a sync");
        assert!(!look(62_100, &[5, 9], &[6, 9]), "one shard moves");
        assert!(look(64_100, &[5, 9], &[6, 9]));
    }
}
