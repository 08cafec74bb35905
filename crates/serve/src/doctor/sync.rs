//! Measurement of sync latency, with the same writes as the write-ahead log.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use journal::{SyncCounts, SyncTimes};
use meter::clock::now_ns;
use meter::histogram::Histogram;
use serde_json::json;

use super::finding::Finding;

const CHECK: &str = "sync";

/// Bytes of the file; writes start over at its end.
const FILE_SIZE: u64 = 8 << 20;

/// Bytes of a write: a block of a few small records.
const WRITE_SIZE: usize = 512;

/// The measurement ends after this time or this number of syncs.
const WINDOW_NS: u64 = 1_000_000_000;
const SYNCS_MAX: u64 = 20_000;

/// Above this latency the disk dominates the latency of group commits.
const SLOW_NS: u64 = 500_000;

/// Above this latency sequential writes are very slow.
const VERY_SLOW_NS: u64 = 20_000_000;

/// A faster sync has not reached a medium that survives a loss of power, unless the disk has a
/// battery-backed cache.
const INCREDIBLE_NS: u64 = 15_000;

pub(super) fn check(place: &Path) -> Finding {
    let measured = measure(place);
    match measured {
        Err(error) => Finding::fail(
            CHECK,
            format!("cannot write and sync in {}: {error}", place.display()),
            "a node would fail at its first write: check `df` and `dmesg`",
        ),
        Ok(syncs) => judge(&syncs),
    }
}

fn judge(syncs: &Histogram) -> Finding {
    let (p50, p99, count) = (syncs.quantile(0.5), syncs.quantile(0.99), syncs.count());
    let detail = format!(
        "fdatasync p50 {:.3} ms, p99 {:.3} ms ({count} of {WRITE_SIZE} bytes on a zeroed file)",
        millis(p50),
        millis(p99),
    );
    let figures = json!({
        "count": count,
        "p50_ns": p50,
        "p99_ns": p99,
        "max_ns": syncs.quantile(1.0),
    });
    let finding = match p50 {
        0..INCREDIBLE_NS => Finding::warn(
            CHECK,
            detail,
            "too fast for a disk: memory, or a write cache that loses data without power",
        ),
        p50 => rate(p50, detail),
    };
    finding.figures(figures)
}

/// Judges the syncs of the write-ahead log of a running node by their histogram, whose quantiles are
/// upper bounds.
pub(super) fn check_running(syncs: &SyncCounts) -> Finding {
    let count: u64 = syncs.counts.iter().sum();
    if count == 0 {
        return Finding::ok(CHECK, "the write-ahead log has not been synced yet");
    }
    let (p50, p99) = (bound(syncs, count, 50), bound(syncs, count, 99));
    let shown = |bound: Option<u64>| match (bound, SyncTimes::BOUNDS_NS.last()) {
        (Some(ns), _) => format!("up to {} ms", millis(ns)),
        (None, last) => format!("over {} ms", millis(last.copied().unwrap_or_default())),
    };
    let detail = format!(
        "p50 {}, p99 {} ({count} syncs of the write-ahead log since the start)",
        shown(p50),
        shown(p99),
    );
    let figures = json!({ "count": count, "p50_max_ns": p50, "p99_max_ns": p99 });
    rate(p50.unwrap_or(u64::MAX), detail).figures(figures)
}

/// Returns the bound of the range that has a percentile; `None` for the last one.
fn bound(syncs: &SyncCounts, count: u64, percentile: u64) -> Option<u64> {
    let rank = (count * percentile).div_ceil(100);
    let mut seen = 0;
    let range = syncs.counts.iter().position(|in_range| {
        seen += in_range;
        seen >= rank
    });
    SyncTimes::BOUNDS_NS.get(range?).copied()
}

/// Returns the finding for a median duration.
fn rate(p50_ns: u64, detail: String) -> Finding {
    let hint = match p50_ns {
        _ if p50_ns <= SLOW_NS => return Finding::ok(CHECK, detail),
        ..VERY_SLOW_NS => {
            "slower than 0.5 ms: concurrent writes share a sync, but a single write waits this long"
        }
        _ => "very slow: use an SSD, or a disk that is not shared with other programs",
    };
    Finding::warn(CHECK, detail, hint)
}

fn millis(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Measures the duration of syncs, in nanoseconds.
fn measure(place: &Path) -> io::Result<Histogram> {
    let zeroed = Zeroed::create(place)?;
    let block = [0xA5; WRITE_SIZE];
    let mut syncs = Histogram::new();
    let begin_ns = now_ns();
    let mut offset = 0;
    while syncs.count() < SYNCS_MAX {
        zeroed.file.write_all_at(&block, offset)?;
        let written_ns = now_ns();
        zeroed.file.sync_data()?;
        let synced_ns = now_ns();
        syncs.record(synced_ns - written_ns);
        offset = (offset + WRITE_SIZE as u64) % FILE_SIZE;
        if synced_ns - begin_ns >= WINDOW_NS {
            break;
        }
    }
    Ok(syncs)
}

/// A file of zeros, removed on drop.
struct Zeroed {
    file: File,
    path: PathBuf,
}

impl Zeroed {
    fn create(place: &Path) -> io::Result<Self> {
        let path = place.join(format!(".telpher-doctor-{}.zeroed", std::process::id()));
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let zeroed = Self { file, path };
        let zeros = vec![0; 1 << 20];
        for offset in (0..FILE_SIZE).step_by(zeros.len()) {
            zeroed.file.write_all_at(&zeros, offset)?;
        }
        zeroed.file.sync_all()?;
        Ok(zeroed)
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        // There is no other way to remove it.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    fn of(ns: u64) -> Finding {
        let mut syncs = Histogram::new();
        syncs.record(ns);
        judge(&syncs)
    }

    #[test]
    fn median_sync_latency_decides_the_doctor_verdict() {
        assert_eq!(of(1_000).verdict, Verdict::Warn);
        assert_eq!(of(200_000).verdict, Verdict::Ok);
        assert_eq!(of(2_000_000).verdict, Verdict::Warn);
        let very = of(50_000_000);
        assert!(very.hints[0].starts_with("very slow"), "{:?}", very.hints);
        assert!(
            very.detail.starts_with("fdatasync p50 50.0"),
            "{}",
            very.detail
        );
    }

    #[test]
    fn syncs_of_a_running_node_are_judged_by_the_range_of_their_median() {
        let of = |ranges: &[(usize, u64)]| {
            let mut counts = vec![0; SyncTimes::BOUNDS_NS.len() + 1];
            ranges
                .iter()
                .for_each(|(range, count)| counts[*range] = *count);
            check_running(&SyncCounts { counts, sum_ns: 0 })
        };
        assert_eq!(of(&[]).verdict, Verdict::Ok);
        let fast = of(&[(0, 60), (5, 38), (6, 2)]);
        assert_eq!(fast.verdict, Verdict::Ok);
        assert_eq!(
            fast.detail,
            "p50 up to 0.05 ms, p99 up to 1 ms (100 syncs of the write-ahead log since the start)"
        );
        assert_eq!(of(&[(0, 49), (7, 51)]).verdict, Verdict::Warn);
        let hung = of(&[(15, 1)]);
        assert!(hung.hints[0].starts_with("very slow"), "{:?}", hung.hints);
        assert!(
            hung.detail.starts_with("p50 over 2000 ms"),
            "{}",
            hung.detail
        );
    }

    #[test]
    fn every_sync_is_measured_and_the_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let syncs = measure(dir.path()).unwrap();
        assert!(syncs.count() > 0);
        assert!(dir.path().read_dir().unwrap().next().is_none());
        assert!(measure(&dir.path().join("missing")).is_err());
    }
}
