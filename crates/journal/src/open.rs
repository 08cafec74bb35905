//! Opening a journal: loads the manifest, extents and streams, replays the line, and begins a new
//! segment.

use std::io;
use std::sync::Arc;

use crate::background::Background;
use crate::cache_line::CacheLine;
use crate::disk::Disk;
use crate::disk::spares::Spares;
use crate::extent::{self, ExtentError, ExtentSet};
use crate::filing::{self, Erasures, Filer};
use crate::line::{Epochs, Line};
use crate::manifest::{self, Manifest, ManifestError};
use crate::options::{Commit, Options};
use crate::record::RecordKind;
use crate::recovery::{self, LineError, Recovery, ReplayedLine};
use crate::segment::{self, LINE_DIR, Segment, SegmentHeader, ShardEnd};
use crate::shard::{BlockOrder, Shard};
use crate::shared::{Segments, Shared};
use crate::stream::Stream;
use crate::sync::Mutex;
use crate::threads::Threads;
use crate::votes::LastVote;
use crate::{Index, Journal, ShardId};

/// A journal that cannot be opened. Nothing was changed except what every start changes.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Invalid options.
    #[error("invalid journal options: {0}")]
    Options(&'static str),
    /// The manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// There are segments but no manifest: it was removed, or the directory is not a journal's.
    #[error("MANIFEST is missing, but there are segments")]
    NoManifest,
    /// An extent cannot be used.
    #[error(transparent)]
    Extent(#[from] ExtentError),
    /// The line cannot be replayed.
    #[error(transparent)]
    Line(#[from] LineError),
    /// An I/O error.
    #[error("cannot open the journal: {0}")]
    Io(#[from] io::Error),
}

/// A journal without threads, for simulations: the owner calls the steps.
#[derive(Debug)]
pub struct SteppedJournal {
    /// The journal handle.
    pub journal: Journal,
    /// The line.
    pub line: Line,
    /// The filing.
    pub background: Background,
    /// Report of the recovery.
    pub recovery: Recovery,
}

impl Journal {
    /// Opens a journal, or creates one in an empty directory, and starts its threads. `now_ms`
    /// returns the milliseconds since 1970.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: &Options,
        now_ms: impl Fn() -> u64 + Send + 'static,
    ) -> Result<(Journal, Recovery), OpenError> {
        let (shared, line, background, recovery) = open(disk, options)?;
        let threads = Threads::start(&shared, line, background, now_ms)?;
        Ok((Journal::new(shared, Some(threads)), recovery))
    }

    /// Opens a journal, or creates one in an empty directory, without threads.
    pub fn open_stepped(
        disk: Arc<dyn Disk>,
        options: &Options,
    ) -> Result<SteppedJournal, OpenError> {
        let (shared, line, background, recovery) = open(disk, options)?;
        Ok(SteppedJournal {
            journal: Journal::new(shared, None),
            line,
            background,
            recovery,
        })
    }
}

fn open(
    disk: Arc<dyn Disk>,
    options: &Options,
) -> Result<(Arc<Shared>, Line, Background, Recovery), OpenError> {
    options.check().map_err(OpenError::Options)?;
    let mut manifest = load_or_form(&*disk, options)?;
    let extents = Arc::new(ExtentSet::open(&*disk, manifest.extents())?);
    let erasures = Arc::new(Erasures::default());
    let (shards, has_erased) = load_shards(&manifest, &extents, &erasures)?;
    let epochs = Epochs::new(options.entropy ^ manifest.journal_id);
    let recovered = recovery::recover(&*disk, &manifest, &shards, epochs, options.accept_loss)?;
    commit_known(&manifest, &shards, options.commit, &erasures);
    let spares = Arc::new(Spares::open(disk.clone(), LINE_DIR, options.segment_size)?);
    remove_filed(&*disk, &recovered.filed, &extents)?;
    if !has_erased {
        // An erase that is not filed yet is pending, and zeroes them when it is carried out.
        spares.trust_used();
    }
    let mut segments = recovered.segments.clone();
    let active = begin_segment(&*disk, &manifest, options, &spares, &shards, &recovered)?;
    let upgraded_from = upgrade(&*disk, &mut manifest)?;
    if recovered.is_last_empty {
        segments.pop_back();
    }
    segments.push_back(active.clone());
    if has_erased {
        erasures.inherit(active.header.base);
    }
    let filing_options = filing::Options {
        erase_within_ms: options.erase_within_ms,
        reserve_size: options.reserve_size,
        piece_size_min: options.piece_size_min,
    };
    let filer = Filer::open(
        disk.clone(),
        filing_options,
        manifest.clone(),
        extents,
        spares.clone(),
        erasures.clone(),
    )?;
    let shared = Arc::new(Shared {
        disk,
        journal_id: manifest.journal_id,
        commit: options.commit,
        limits: options.limits(),
        shards: shards.into(),
        health: Default::default(),
        doorbell: Default::default(),
        proposals: Default::default(),
        segments: CacheLine(Mutex::new(Segments {
            open: segments,
            durable: active.header.first(),
            first_own: active.header.sequence,
            summaries: Default::default(),
            cuts: recovered.cuts,
            released: Default::default(),
        })),
        spares,
        erasures,
        filing_bell: Default::default(),
        is_starved: Default::default(),
        queued_bytes: Default::default(),
        seal_wanted: Default::default(),
        is_in_bulk: Default::default(),
        is_closing: Default::default(),
        is_line_closed: Default::default(),
        counters: Default::default(),
    });
    let line = Line::new(shared.clone(), epochs, active);
    let background = Background::new(shared.clone(), filer);
    let recovery = Recovery {
        upgraded_from,
        ..recovered.recovery
    };
    Ok((shared, line, background, recovery))
}

/// Raises the version of an older journal, which this build has recovered, to its own. Returns the
/// older version.
fn upgrade(disk: &dyn Disk, manifest: &mut Manifest) -> io::Result<Option<u32>> {
    let version = manifest.version;
    if version == manifest::VERSION {
        return Ok(None);
    }
    manifest.version = manifest::VERSION;
    manifest.prepare(disk)?;
    Manifest::commit(disk)?;
    Ok(Some(version))
}

/// Loads the manifest, or creates the first one in an empty directory.
fn load_or_form(disk: &dyn Disk, options: &Options) -> Result<Manifest, OpenError> {
    for directory in ["", LINE_DIR, extent::DIRECTORY] {
        disk.create_dir(directory)?;
    }
    disk.sync_dir("")?;
    if let Some(manifest) = Manifest::load(disk)? {
        return Ok(manifest);
    }
    let names = disk.list(LINE_DIR)?;
    if names
        .iter()
        .any(|name| segment::sequence_of(name).is_some())
    {
        return Err(OpenError::NoManifest);
    }
    let manifest = Manifest::new(options.journal_id, options.shard_count);
    manifest.prepare(disk)?;
    Manifest::commit(disk)?;
    Ok(manifest)
}

/// Loads the shards as of the last filed segment. The flag is true if anything had been erased by
/// then.
fn load_shards(
    manifest: &Manifest,
    extents: &Arc<ExtentSet>,
    erasures: &Erasures,
) -> Result<(Vec<Shard>, bool), OpenError> {
    let (mut shards, mut has_erased) = (Vec::new(), false);
    for (number, filed) in manifest.shards.iter().enumerate() {
        let id = ShardId(number as u16);
        let end = ShardEnd {
            index: filed.index,
            term: filed.term,
        };
        let shard = Shard::new(id, end);
        let streams = extents.streams(id)?.map(|summary| {
            let summary = summary?;
            has_erased |= summary.erased > 0;
            if summary.unerased {
                erasures.note(id, summary.stream, summary.erased, 0);
            }
            let stream = Stream::filed(summary.start, summary.next);
            Ok::<_, ExtentError>((summary.stream, stream))
        });
        let mut state = shard.state.lock();
        state.streams = streams.collect::<Result<_, _>>()?;
        state.extents = extents.clone();
        drop(state);
        shards.push(shard);
    }
    Ok((shards, has_erased))
}

/// Publishes the replayed blocks as written, and commits those that are known to be committed. With
/// [`Commit::ByCaller`] those are the ones in the manifest; otherwise all are, and a reign begins.
fn commit_known(manifest: &Manifest, shards: &[Shard], commit: Commit, erasures: &Erasures) {
    for (shard, filed) in shards.iter().zip(&manifest.shards) {
        let mut state = shard.state.lock();
        let written = state.end().index;
        let committed: Index = match commit {
            Commit::WithDurable => Index(u64::MAX),
            Commit::ByCaller => filed.index,
        };
        state.commit(committed, |trim| {
            if trim.kind == RecordKind::Erase {
                erasures.note(shard.id, trim.stream, trim.start, trim.time_ms);
            }
        });
        shard.publication.start_at(written, state.committed());
        if commit == Commit::WithDurable {
            let term = state.end().term;
            let reign = state.begin_reign(term, BlockOrder::Alone);
            shard.publication.begin_reign(reign);
        }
    }
}

/// Removes filed segments to which no extent refers. They are not recycled: an extent may have referred
/// to one, and then a backup may have a link to its file.
fn remove_filed(disk: &dyn Disk, filed: &[u64], extents: &ExtentSet) -> io::Result<()> {
    let retained = extents.segments();
    for sequence in filed.iter().filter(|it| !retained.contains(it)) {
        disk.remove(&segment::path(*sequence))?;
    }
    Ok(())
}

/// Begins a new segment. Nothing is ever appended to a segment of an earlier run, so stale bytes
/// never follow new ones.
fn begin_segment(
    disk: &dyn Disk,
    manifest: &Manifest,
    options: &Options,
    spares: &Spares,
    shards: &[Shard],
    recovered: &ReplayedLine,
) -> io::Result<Segment> {
    if spares.ready() == 0 {
        spares.prepare()?;
    }
    let spare = spares.take().ok_or(io::ErrorKind::NotFound)?;
    // A last segment without a block is replaced under the same name: the bytes that its file held
    // before are unknown, and some may have been erased.
    let (sequence, base, previous_end) = match recovered.segments.back().map(|last| &last.header) {
        Some(last) if recovered.is_last_empty => (last.sequence, last.base, last.previous_end),
        Some(last) => (last.sequence + 1, last.limit(), recovered.end),
        None => (manifest.sequence + 1, manifest.filed, recovered.end),
    };
    let header = SegmentHeader {
        journal_id: manifest.journal_id,
        sequence,
        base,
        size: options.segment_size,
        epoch: Epochs::new(options.entropy ^ manifest.journal_id).for_segment(sequence),
        previous_end,
        shards: shards.iter().map(end_of).collect(),
        votes: shards.iter().map(vote_of).collect(),
    };
    segment::begin(disk, spare.file, &spare.path, header)
}

fn end_of(shard: &Shard) -> ShardEnd {
    shard.state.lock().end()
}

fn vote_of(shard: &Shard) -> LastVote {
    shard.state.lock().votes.last()
}
