//! `bench journal --restart`: what starting a journal with many streams takes, and what a stream that
//! nobody uses costs.
//!
//! Three processes, one after the other, so that none measures what another has left in its memory:
//! the first writes the streams into one segment and closes; the second starts with all of them in the
//! unfiled line, and files them; the third starts with all of them filed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journal::disk::RealDisk;
use journal::{AppendError, Journal, Options, ReadLimit, ShardId, StreamId};
use serde::{Deserialize, Serialize};

use super::writers::{fresh, now_ms};
use crate::clock::now_ns;
use crate::process::Memory;
use crate::workload::child::Pin;
use crate::workload::role::{self, Failure, Spec, hear, say};
use crate::workload::{Surroundings, WorkloadError};

/// What one process may take.
const LIMIT: Duration = Duration::from_secs(600);

/// A process that files looks so often whether it is done.
const LOOK: Duration = Duration::from_millis(20);

/// So many streams are read back after each start.
const READ_BACK: u64 = 1_000;

/// What the line needs for a record beside its bytes, and for its end.
const RECORD_COST: u64 = 24;
const LINE_COST: u64 = 16 << 20;
const SEGMENT_SIZE: std::ops::RangeInclusive<u64> = 64 << 20..=1 << 30;

/// What to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// Streams.
    pub streams: u64,
    /// Records in each.
    pub records: u64,
    /// Bytes of a record.
    pub size: u64,
    /// A directory on the disk that is used; the journal's own is made in it.
    pub directory: PathBuf,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestartReport {
    /// Streams.
    pub streams: u64,
    /// Records in each.
    pub records: u64,
    /// Bytes of a record.
    pub size: u64,
    /// Bytes of the line that holds them.
    pub line_bytes: u64,
    /// With all of them in the unfiled line, unless that is longer than four segments of 1 GiB.
    pub unfiled: Start,
    /// With all of them filed.
    pub filed: Start,
    /// Files of the journal then.
    pub files: u64,
}

/// One start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Until appends are taken, in milliseconds.
    pub start_ms: u64,
    /// Memory that it added to the process, in bytes.
    pub memory_bytes: u64,
    /// The same for each stream.
    pub memory_bytes_per_stream: u64,
}

/// What one of the processes does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::workload) struct StreamsSpec {
    directory: String,
    streams: u64,
    records: u64,
    size: u64,
    segment_size: u64,
    part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    Write,
    StartAndFile,
    Start,
}

/// Runs it.
///
/// # Errors
/// When a process fails, or a stream is not there after a start.
pub fn run(surroundings: &Surroundings, restart: &Restart) -> Result<RestartReport, WorkloadError> {
    let place = tempfile::Builder::new()
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
        directory: place.path().display().to_string(),
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
        files: count_files(place.path()).map_err(WorkloadError::Directory)?,
    })
}

/// Has a process do one part; what it says when it is done and its journal is closed.
fn part<T: for<'a> Deserialize<'a>>(
    surroundings: &Surroundings,
    spec: StreamsSpec,
) -> Result<T, WorkloadError> {
    let spec = Spec::JournalStreams(spec);
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
/// When the journal cannot be opened or does not hold what was written.
pub(in crate::workload) fn play(spec: &StreamsSpec) -> Result<(), Failure> {
    let before = resident()?;
    let begin_ns = now_ns();
    let journal = open(spec)?;
    let start_ms = (now_ns() - begin_ns) / 1_000_000;
    let memory_bytes = resident()?.saturating_sub(before);
    if spec.part == Part::Write {
        write(&journal, spec)?;
        let line_bytes = journal.stats().bytes;
        drop(journal);
        say(&line_bytes)?;
        return hear().map(drop);
    }
    read_back(&journal, spec)?;
    if spec.part == Part::StartAndFile {
        let position = journal.seal();
        while !journal.is_filed(position) {
            std::thread::sleep(LOOK);
        }
    }
    drop(journal);
    say(&Start {
        start_ms,
        memory_bytes,
        memory_bytes_per_stream: memory_bytes / spec.streams.max(1),
    })?;
    hear().map(drop)
}

fn resident() -> Result<u64, Failure> {
    let memory = Memory::of(std::process::id());
    Ok(memory
        .ok_or("the system does not tell how much memory this is")?
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

/// A record for every stream, over and over.
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

/// Some of the streams, from first to last, hold what was written.
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
    fn what_is_written_is_there_in_the_line_and_filed() {
        let place = tempfile::tempdir().unwrap();
        let spec = StreamsSpec {
            directory: place.path().display().to_string(),
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
        assert!(count_files(place.path()).unwrap() < 50);
    }
}
