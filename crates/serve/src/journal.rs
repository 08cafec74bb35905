//! Opens the journal of a node in its data directory, and describes its failures.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::Config;
use journal::disk::RealDisk;
use journal::manifest::{self, Manifest};
use journal::segment;
use journal::{AcceptLoss, Commit, Health, Journal, OpenError, Options, Position, SyncTimes};
use meter::clock::now_ns;
use model::ByteSize;
use parking_lot::Mutex;
use platform::Clock;

use console::{Exit, Failure};

/// The journal's directory in the data directory.
pub(super) const DIRECTORY: &str = "journal";

/// Time limit for filing all records.
const FILING_LIMIT: Duration = Duration::from_secs(120);

/// Time between two checks of the filing.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum time that the end of a node waits for queued writes.
const FLUSH: Duration = Duration::from_secs(2);

/// Opens the journal, or creates it.
pub(super) fn open(
    config: &Config,
    ports: &platform::Ports,
) -> Result<(Arc<Journal>, Arc<SyncTimes>), Failure> {
    open_with(config, ports, options(config, ports))
}

/// Opens the journal of a member: its blocks are ordered and committed by the consensus.
pub(super) fn open_member(
    config: &Config,
    ports: &platform::Ports,
) -> Result<(Arc<Journal>, Arc<SyncTimes>), Failure> {
    let options = Options {
        commit: Commit::ByCaller,
        hold_size: u64::MAX,
        accept_loss: AcceptLoss::No,
        ..options(config, ports)
    };
    open_with(config, ports, options)
}

fn open_with(
    config: &Config,
    ports: &platform::Ports,
    options: Options,
) -> Result<(Arc<Journal>, Arc<SyncTimes>), Failure> {
    let dir = config.data.dir.join(DIRECTORY);
    let clock = background_clock(ports.clock.clone());
    announce_upgrade(&dir);
    let disk = segment::measured(Arc::new(RealDisk::new(&dir)), now_ns);
    let times = disk.times().clone();
    let opened = Journal::open(Arc::new(disk), &options, clock);
    let (journal, recovery) = opened.map_err(|error| open_failure(config, &error))?;
    tracing::info!(
        segments = recovery.segments,
        blocks = recovery.blocks,
        bytes = recovery.bytes,
        torn_bytes = recovery.torn_bytes,
        "the journal is open"
    );
    Ok((Arc::new(journal), times))
}

/// Says on the log that this start upgrades an older data directory, if it does.
fn announce_upgrade(dir: &Path) {
    if let Ok(Some(manifest)) = Manifest::load(&RealDisk::new(dir))
        && manifest.version < manifest::VERSION
    {
        tracing::warn!(
            from = manifest.version,
            to = manifest::VERSION,
            "this start upgrades the storage format of the data directory; this cannot be undone, and \
             earlier versions of telpher refuse the directory afterwards; to go back, restore a copy \
             that `telpher backup` made before the upgrade"
        );
    }
}

/// Returns a clock for the journal's background work, in milliseconds since 1970. It follows the
/// wall clock but is monotonic, so that a pause ends even if the wall clock is set back.
fn background_clock(clock: Arc<dyn Clock>) -> impl Fn() -> u64 + Send {
    let base = Mutex::new((clock.now_ns(), clock.unix_ms()));
    move || {
        let mut base = base.lock();
        let (now_ns, wall_ms) = (clock.now_ns(), clock.unix_ms());
        let steady_ms = base.1 + now_ns.saturating_sub(base.0) / 1_000_000;
        if wall_ms > steady_ms {
            *base = (now_ns, wall_ms);
        }
        wall_ms.max(steady_ms)
    }
}

fn open_failure(config: &Config, error: &OpenError) -> Failure {
    let dir = config.data.dir.display();
    let is_full = matches!(
        error,
        OpenError::Io(error)
            if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
    );
    if !is_full {
        let message = format!("cannot open the journal in {dir}/{DIRECTORY}: {error}");
        let hint = format!("`telpher inspect {dir}` describes the damage");
        return Failure::new(Exit::Failed, message).hint(hint);
    }
    let (segment, reserve) = (config.journal.segment_size, config.journal.reserve);
    let needed = ByteSize::bytes(2 * segment.as_u64() + reserve.as_u64());
    let message = format!(
        "the disk of {dir} has too little space: the journal needs {needed} at the start \
         (two segments of {segment} and a reserve of {reserve})"
    );
    Failure::new(Exit::Unavailable, message)
        .hint("free space, or use smaller segments: --journal-segment-size 16MiB")
}

fn options(config: &Config, ports: &platform::Ports) -> Options {
    let journal = &config.journal;
    Options {
        journal_id: ports.entropy.next_u64(),
        entropy: ports.entropy.next_u64(),
        // The configuration limits it to 64.
        shard_count: u16::try_from(journal.shards).unwrap_or(u16::MAX),
        segment_size: journal.segment_size.as_u64() & !4095,
        queue_bytes_max: journal.queue_size_max.as_u64(),
        tail_bytes_max: journal.tail_size_max.as_usize(),
        reserve_size: journal.reserve.as_u64(),
        accept_loss: match journal.accept_loss {
            true => AcceptLoss::Yes,
            false => AcceptLoss::No,
        },
        ..Options::default()
    }
}

/// Waits until everything before a position is filed. The error is the reason why it is not.
pub(super) fn wait_until_filed(journal: &Journal, position: Position) -> Result<(), String> {
    for _ in 0..FILING_LIMIT.as_millis() / POLL_INTERVAL.as_millis() {
        if journal.is_filed(position) {
            return Ok(());
        }
        match journal.health() {
            Health::Serving | Health::FilingRetrying { .. } | Health::DiskFull => {
                std::thread::sleep(POLL_INTERVAL);
            }
            Health::FilingFailed { reason } | Health::Failed { reason } => {
                return Err(format!("the journal has failed: {reason}"));
            }
        }
    }
    Err(format!(
        "filing did not finish within {FILING_LIMIT:?}; check the free disk space"
    ))
}

/// Returns the failure of a process whose journal has failed.
pub(super) fn failure(config: &Config, reason: &str) -> Failure {
    let message = format!("the journal has failed: {reason}");
    Failure::new(Exit::Failed, message).hint(format!(
        "repair the disk and restart the node; `telpher inspect {}` checks the data",
        config.data.dir.display()
    ))
}

/// Waits until no write is queued. Acknowledged writes are on disk in any case.
pub(super) fn flush(journal: &Journal) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the end of a process waits by the real clock"
    )]
    let now = Instant::now;
    let deadline = now() + FLUSH;
    let has_failed = || matches!(journal.health(), Health::Failed { .. });
    while journal.stats().queued_bytes > 0 && !has_failed() && now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}
