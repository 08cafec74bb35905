//! `bench journal --restart`: start-up time of a journal with many streams, and the memory of an
//! unused stream.
//!
//! Three processes run one after the other, so that none measures memory left by another. The first
//! writes the streams into one segment and closes. The second starts with all of them in the
//! unfiled write-ahead log, and files them. The third starts with all of them filed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journal::disk::RealDisk;
use journal::{AppendError, Journal, Options, ReadLimit, ShardId, StreamId};
use serde::{Deserialize, Serialize};

use bench::process::Memory;
use bench::workload::child::Pin;
use bench::workload::error::WorkloadError;
use bench::workload::role::{self, Failure, RoleSpec, read_line, write_line};
use bench::workload::surroundings::Surroundings;
use bench_storage::journal::{fresh, now_ms};
use meter::clock::now_ns;

/// Time limit of one process.
const LIMIT: Duration = Duration::from_secs(600);

/// Interval at which the progress of filing is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Number of streams that are read back after each start.
const READ_BACK: u64 = 1_000;

/// Overhead of a record in the write-ahead log, and of the end of the log, in bytes.
const RECORD_COST: u64 = 24;
const LINE_COST: u64 = 16 << 20;
const SEGMENT_SIZE: std::ops::RangeInclusive<u64> = 64 << 20..=1 << 30;

/// Parameters of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// Number of streams.
    pub streams: u64,
    /// Records in each stream.
    pub records: u64,
    /// Size of a record in bytes.
    pub size: u64,
    /// Directory on the measured disk; the journal's directory is created in it.
    pub directory: PathBuf,
}

/// Result of the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestartReport {
    /// Number of streams.
    pub streams: u64,
    /// Records in each stream.
    pub records: u64,
    /// Size of a record in bytes.
    pub size: u64,
    /// Bytes of the write-ahead log that contains them.
    pub line_bytes: u64,
    /// Start with all streams in the unfiled log, unless that is longer than four segments of 1
    /// GiB.
    pub unfiled: Start,
    /// Start with all streams filed.
    pub filed: Start,
    /// Number of files of the filed journal.
    pub files: u64,
}

/// Measurement of one start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Time until appends are accepted, in milliseconds.
    pub start_ms: u64,
    /// Memory that the start added to the process, in bytes.
    pub memory_bytes: u64,
    /// Added memory per stream, in bytes.
    pub memory_bytes_per_stream: u64,
}

/// Parameters of one of the processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StreamsSpec {
    directory: String,
    streams: u64,
    records: u64,
    size: u64,
    segment_size: u64,
    part: Part,
}

impl RoleSpec for StreamsSpec {
    fn role(&self) -> &'static str {
        "journal-streams"
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    Write,
    StartAndFile,
    Start,
}

/// Runs the measurement.
///
/// # Errors
/// When a process fails, or a stream is missing after a start.
pub fn run(surroundings: &Surroundings, restart: &Restart) -> Result<RestartReport, WorkloadError> {
    let scratch = tempfile::Builder::new()
        .prefix("telpher-restart-")
        .tempdir_in(&restart.directory)
        .map_err(WorkloadError::Directory)?;
    let record = restart.size.saturating_add(RECORD_COST);
    let needed = restart
        .streams
        .saturating_mul(restart.records)
        .saturating_mul(record);
    let size = needed.saturating_add(LINE_COST).next_multiple_of(1 << 20);
    let spec = |part| StreamsSpec {
        directory: scratch.path().display().to_string(),
        streams: restart.streams,
        records: restart.records,
        size: restart.size,
        segment_size: size.clamp(*SEGMENT_SIZE.start(), *SEGMENT_SIZE.end()),
        part,
    };
    Ok(RestartReport {
        streams: restart.streams,
        records: restart.records,
        size: restart.size,
        line_bytes: part(surroundings, spec(Part::Write))?,
        unfiled: part(surroundings, spec(Part::StartAndFile))?,
        filed: part(surroundings, spec(Part::Start))?,
        files: count_files(scratch.path()).map_err(WorkloadError::Directory)?,
    })
}

/// Runs one part in a process of its own. Returns its report, sent when its journal is closed.
fn part<T: for<'a> Deserialize<'a>>(
    surroundings: &Surroundings,
    spec: StreamsSpec,
) -> Result<T, WorkloadError> {
    let mut process = role::start(&surroundings.executable, &spec, Pin::Nowhere)?;
    let line = process.line_within(LIMIT)?;
    Ok(process.parse(line)?)
}

fn count_files(directory: &Path) -> std::io::Result<u64> {
    let mut count = 0;
    for entry in directory.read_dir()? {
        let entry = entry?;
        count += match entry.file_type()?.is_dir() {
            true => count_files(&entry.path())?,
            false => 1,
        };
    }
    Ok(count)
}

/// Plays the role.
///
/// # Errors
/// When the journal cannot be opened, or a record that was written is missing.
pub fn play(spec: &StreamsSpec) -> Result<(), Failure> {
    let before = resident()?;
    let begin_ns = now_ns();
    let journal = open(spec)?;
    let start_ms = (now_ns() - begin_ns) / 1_000_000;
    let memory_bytes = resident()?.saturating_sub(before);
    if spec.part == Part::Write {
        write(&journal, spec)?;
        let line_bytes = journal.stats().bytes;
        drop(journal);
        write_line(&line_bytes)?;
        return read_line().map(drop);
    }
    read_back(&journal, spec)?;
    if spec.part == Part::StartAndFile {
        let position = journal.seal();
        while !journal.is_filed(position) {
            std::thread::sleep(LOOK);
        }
    }
    drop(journal);
    write_line(&Start {
        start_ms,
        memory_bytes,
        memory_bytes_per_stream: memory_bytes / spec.streams.max(1),
    })?;
    read_line().map(drop)
}

fn resident() -> Result<u64, Failure> {
    let memory = Memory::of(std::process::id());
    Ok(memory
        .ok_or("cannot read the memory of this process from /proc")?
        .rss_bytes)
}

fn open(spec: &StreamsSpec) -> Result<Journal, Failure> {
    let options = Options {
        journal_id: fresh(),
        entropy: fresh(),
        segment_size: spec.segment_size,
        ..Options::default()
    };
    let disk = Arc::new(RealDisk::new(&spec.directory));
    Ok(Journal::open(disk, &options, now_ms)?.0)
}

/// Writes one record to every stream in turn, `records` times.
fn write(journal: &Journal, spec: &StreamsSpec) -> Result<(), Failure> {
    let payload = vec![7; spec.size as usize];
    let mut last = None;
    for number in 0..spec.records * spec.streams {
        let stream = number % spec.streams;
        loop {
            let mut guard = journal.lock(shard_of(journal, stream), now_ms());
            match guard.append(StreamId(stream), None, 0, &payload) {
                Ok(appended) => last = Some(appended.ticket),
                Err(AppendError::Full) => {
                    drop(guard);
                    last.map(|ticket| journal.wait(ticket));
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            break;
        }
    }
    Ok(())
}

/// Checks a sample of the streams, from first to last.
fn read_back(journal: &Journal, spec: &StreamsSpec) -> Result<(), Failure> {
    let limit = ReadLimit {
        records: usize::MAX,
        bytes: usize::MAX,
    };
    for stream in (0..spec.streams).step_by((spec.streams / READ_BACK).max(1) as usize) {
        let read = journal.read(shard_of(journal, stream), StreamId(stream), 0, limit)?;
        if read.records.len() as u64 != spec.records {
            let found = read.records.len();
            return Err(format!("stream {stream} has {found} of {} records", spec.records).into());
        }
    }
    Ok(())
}

fn shard_of(journal: &Journal, stream: u64) -> ShardId {
    ShardId((stream % u64::from(journal.shard_count())) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_records_are_present_unfiled_and_filed() {
        let scratch = tempfile::tempdir().unwrap();
        let spec = StreamsSpec {
            directory: scratch.path().display().to_string(),
            streams: 50,
            records: 3,
            size: 10,
            segment_size: 1 << 20,
            part: Part::Write,
        };
        let journal = open(&spec).unwrap();
        write(&journal, &spec).unwrap();
        drop(journal);
        let journal = open(&spec).unwrap();
        read_back(&journal, &spec).unwrap();
        let position = journal.seal();
        while !journal.is_filed(position) {
            std::thread::sleep(LOOK);
        }
        read_back(&journal, &spec).unwrap();
        let more = StreamsSpec { records: 4, ..spec };
        assert!(read_back(&journal, &more).is_err());
        drop(journal);
        assert!(count_files(scratch.path()).unwrap() < 50);
    }
}
