//! How long the disk takes to make a write durable, measured as the journal's line does it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bench::clock::now_ns;
use bench::histogram::Histogram;
use serde_json::json;

use super::Finding;

const CHECK: &str = "sync";

/// Bytes of the file; writes start over at its end.
const FILE_SIZE: u64 = 8 << 20;

/// Bytes of a write: a block of a few small records.
const WRITE_SIZE: usize = 512;

/// As long as this is measured, or as often, whatever comes first.
const WINDOW_NS: u64 = 1_000_000_000;
const SYNCS_MAX: u64 = 20_000;

/// Above it a group commit's latency is the disk's.
const SLOW_NS: u64 = 500_000;

/// Above it one write after the other is painfully slow.
const VERY_SLOW_NS: u64 = 20_000_000;

/// A sync that takes less reached no medium that survives a loss of power, unless a cache with a
/// battery of its own stands before it.
const INCREDIBLE_NS: u64 = 15_000;

pub(super) fn check(place: &Path) -> Finding {
    let measured = measure(place);
    match measured {
        Err(error) => Finding::fail(
            CHECK,
            format!("cannot write and sync in {}: {error}", place.display()),
            "a node would stop at the first write: is the disk full or failing? `dmesg` knows",
        ),
        Ok(syncs) => judge(&syncs),
    }
}

fn judge(syncs: &Histogram) -> Finding {
    let (p50, p99, count) = (syncs.quantile(0.5), syncs.quantile(0.99), syncs.count());
    let millis = |ns: u64| ns as f64 / 1e6;
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
            "too fast for a disk: memory, or a write cache that a loss of power empties",
        ),
        INCREDIBLE_NS..SLOW_NS => Finding::ok(CHECK, detail),
        SLOW_NS..VERY_SLOW_NS => Finding::warn(
            CHECK,
            detail,
            "slower than 0.5 ms: writes that wait share a sync, but one alone waits this long",
        ),
        _ => Finding::warn(
            CHECK,
            detail,
            "very slow: a disk of its own, or one that is not a spinning one, helps most",
        ),
    };
    finding.figures(figures)
}

/// Nanoseconds of each sync.
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

/// A file full of zeros on the disk; removed when it is dropped.
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
        // What cannot be removed now could not be removed by anybody here.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn of(ns: u64) -> Finding {
        let mut syncs = Histogram::new();
        syncs.record(ns);
        judge(&syncs)
    }

    #[test]
    fn the_median_decides() {
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
    fn every_sync_is_measured_and_the_file_is_gone_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let syncs = measure(dir.path()).unwrap();
        assert!(syncs.count() > 0);
        assert!(dir.path().read_dir().unwrap().next().is_none());
        assert!(measure(&dir.path().join("missing")).is_err());
    }
}
