//! The filer over a simulated disk and a line that a test writes segment by segment.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::block::{BLOCK_HEADER_SIZE, BlockHeader, BlockKind};
use crate::disk::spares::Spares;
use crate::disk::{Disk, SimulatedDisk};
use crate::extent::{DIRECTORY, StreamSummary};
use crate::record::{self, RecordKind, RecordView};
use crate::segment::{self, LINE_DIR, SegmentHeader, ShardEnd};

mod crashes;
mod erase_end_to_end;
mod erasing;
mod full_disk;
mod in_place;
mod many_streams;
mod merging;

const JOURNAL: u64 = 0xfeed_beef;
const SHARDS: u16 = 2;
const SEGMENT_SIZE: u64 = 32 << 10;
const HOUR_MS: u64 = 3_600_000;

const OPTIONS: Options = Options {
    erase_within_ms: HOUR_MS,
    reserve_size: 8 << 10,
    piece_size_min: 8 << 10,
};

/// Expected contents of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    start: u64,
    next: u64,
    records: BTreeMap<u64, Vec<u8>>,
}

type Models = BTreeMap<(ShardId, StreamId), Model>;

/// A line without a thread: blocks are buffered until the segment ends, and then durable together.
struct TestLine {
    disk: Arc<SimulatedDisk>,
    spares: Arc<Spares>,
    piece_size_min: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    blocks: Vec<(BlockKind, ShardId, Index, Vec<u8>)>,
    size: u64,
    sealed: Vec<SealedSegment>,
    sequence: u64,
    base: u64,
    indexes: BTreeMap<ShardId, u64>,
    models: Models,
    /// Durable starts.
    starts: BTreeMap<(ShardId, StreamId), u64>,
    trims: u64,
    filed: u64,
    is_full: bool,
    is_in_bulk: bool,
    /// Segments have no summary, as those of an earlier run.
    has_no_summaries: bool,
}

impl TestLine {
    fn put(&self, kind: BlockKind, shard: ShardId, index: Index, body: Vec<u8>) {
        let size = (BLOCK_HEADER_SIZE + body.len()).next_multiple_of(8) as u64;
        if self.state.lock().size + size > SEGMENT_SIZE {
            self.roll();
        }
        let mut state = self.state.lock();
        state.size += size;
        state.blocks.push((kind, shard, index, body));
    }

    fn record(&self, shard: ShardId, view: &RecordView<'_>) {
        let mut body = Vec::new();
        record::encode(view, &mut body);
        let index = {
            let mut state = self.state.lock();
            let index = state.indexes.entry(shard).or_default();
            *index += 1;
            Index(*index)
        };
        self.put(BlockKind::Records, shard, index, body);
    }

    /// Ends the segment under construction, in a file taken from the spares.
    fn roll(&self) {
        if self.spares.ready() == 0 {
            self.spares.prepare().unwrap();
        }
        let spare = self.spares.take().unwrap();
        let mut state = self.state.lock();
        let mut header = SegmentHeader {
            journal_id: JOURNAL,
            sequence: state.sequence,
            base: Position(state.base),
            size: SEGMENT_SIZE,
            epoch: 1000 + state.sequence,
            previous_end: Position(state.base),
            shards: vec![ShardEnd::default(); usize::from(SHARDS)],
            votes: vec![],
        };
        let has_summaries = !state.has_no_summaries;
        let blocks = std::mem::take(&mut state.blocks);
        let segment = segment::begin(&*self.disk, spare.file, &spare.path, header.clone()).unwrap();
        let mut at = segment::SEGMENT_HEADER_SIZE;
        let mut summary = SummaryBuilder::new(self.piece_size_min);
        for (kind, shard, index, body) in blocks {
            let mut block = vec![0; BLOCK_HEADER_SIZE];
            block.extend_from_slice(&body);
            let block_header = BlockHeader {
                kind,
                shard,
                length: block.len() as u32,
                position: Position(state.base + at),
                epoch: header.epoch,
                hint: Position(0),
                count: 1,
                term: 1,
                index,
                time_ms: 1_000 * state.sequence,
            };
            block_header.seal(&mut block, header.seed());
            let checksum = summary.add(&block_header, header.base, &body);
            assert!(checksum.is_none_or(|it| it == crc32c::crc32c(&body)));
            assert_eq!(segment.file.write_at(&block, at).unwrap(), block.len());
            at = block_header.end().0 - state.base;
        }
        segment.file.sync_data().unwrap();
        header.base = Position(state.base);
        let end = Position(state.base + at);
        state.sealed.push(SealedSegment {
            segment,
            end,
            shards: vec![],
            cuts: vec![],
            is_inherited: false,
            summary: summary.finish().filter(|_| has_summaries).map(Arc::new),
        });
        state.sequence += 1;
        state.base += SEGMENT_SIZE;
        state.size = segment::SEGMENT_HEADER_SIZE;
    }
}

impl Line for TestLine {
    fn sealed(&self) -> Option<SealedSegment> {
        self.state.lock().sealed.first().cloned()
    }

    fn sealed_count(&self) -> usize {
        self.state.lock().sealed.len()
    }

    fn active_size(&self) -> u64 {
        self.state.lock().size
    }

    fn is_in_bulk(&self) -> bool {
        self.state.lock().is_in_bulk
    }

    fn start(&self, shard: ShardId, stream: StreamId) -> u64 {
        self.state
            .lock()
            .starts
            .get(&(shard, stream))
            .copied()
            .unwrap_or(0)
    }

    fn trims(&self) -> u64 {
        self.state.lock().trims
    }

    fn seal(&self) -> Position {
        if !self.state.lock().blocks.is_empty() {
            self.roll();
        }
        Position(self.state.lock().base)
    }

    fn publish(&self, _: &Arc<ExtentSet>, manifest: &Manifest) {
        let mut state = self.state.lock();
        state
            .sealed
            .retain(|sealed| sealed.segment.header.sequence > manifest.sequence);
        state.filed = manifest.filed.0;
    }

    fn set_disk_full(&self, is_full: bool) {
        self.state.lock().is_full = is_full;
    }
}

/// A filer with its disk.
struct World {
    disk: Arc<SimulatedDisk>,
    line: TestLine,
    erasures: Arc<Erasures>,
    filer: Filer,
    options: Options,
    now_ms: u64,
}

fn forms(seed: u64) -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new(seed));
    for directory in [LINE_DIR, DIRECTORY] {
        disk.create_dir(directory).unwrap();
    }
    disk.sync_dir("").unwrap();
    Manifest::new(JOURNAL, SHARDS).prepare(&*disk).unwrap();
    Manifest::commit(&*disk).unwrap();
    disk
}

impl World {
    fn new() -> World {
        World::with(OPTIONS)
    }

    fn with(options: Options) -> World {
        World::open(forms(1), Models::new(), options)
    }

    /// Opens the filed data; the line is not replayed here.
    fn open(disk: Arc<SimulatedDisk>, models: Models, options: Options) -> World {
        let manifest = Manifest::load(&*disk).unwrap().unwrap();
        let extents = Arc::new(ExtentSet::open(&*disk, manifest.extents()).unwrap());
        let spares = Arc::new(Spares::open(disk.clone(), LINE_DIR, SEGMENT_SIZE).unwrap());
        let erasures = Arc::new(Erasures::default());
        let mut state = State {
            sequence: manifest.sequence + 1,
            base: manifest.filed.0,
            size: segment::SEGMENT_HEADER_SIZE,
            models,
            ..State::default()
        };
        for (number, known) in manifest.shards.iter().enumerate() {
            let shard = ShardId(number as u16);
            state.indexes.insert(shard, known.index.0);
            for summary in extents.streams(shard).unwrap() {
                let summary = summary.unwrap();
                state.starts.insert((shard, summary.stream), summary.start);
                if summary.unerased {
                    erasures.note(shard, summary.stream, summary.erased, 0);
                }
            }
        }
        let line = TestLine {
            disk: disk.clone(),
            spares: spares.clone(),
            piece_size_min: options.piece_size_min,
            state: Mutex::new(state),
        };
        let filer = Filer::open(
            disk.clone(),
            options,
            manifest,
            extents,
            spares,
            erasures.clone(),
        );
        World {
            disk,
            line,
            erasures,
            filer: filer.unwrap(),
            options,
            now_ms: 10 * HOUR_MS,
        }
    }

    fn reopen(self) -> World {
        let World {
            disk,
            line,
            options,
            ..
        } = self;
        disk.kill();
        World::open(disk, line.state.into_inner().models, options)
    }

    fn append(&self, shard: u16, stream: u64, payload: &[u8]) -> u64 {
        let (shard, stream) = (ShardId(shard), StreamId(stream));
        let offset = {
            let mut state = self.line.state.lock();
            let model = state.models.entry((shard, stream)).or_default();
            model.records.insert(model.next, payload.to_vec());
            model.next += 1;
            model.next - 1
        };
        let view = RecordView {
            stream,
            offset,
            kind: RecordKind::Data,
            tag: 5,
            bytes: payload,
        };
        self.line.record(shard, &view);
        offset
    }

    fn trim(&self, shard: u16, stream: u64, start: u64) {
        self.cut_off(RecordKind::Trim, ShardId(shard), StreamId(stream), start);
    }

    fn erase(&self, shard: u16, stream: u64) {
        let (shard, stream) = (ShardId(shard), StreamId(stream));
        let next = self.line.state.lock().models[&(shard, stream)].next;
        self.cut_off(RecordKind::Erase, shard, stream, next);
        self.erasures.note(shard, stream, next, self.now_ms);
    }

    fn cut_off(&self, kind: RecordKind, shard: ShardId, stream: StreamId, start: u64) {
        {
            let mut state = self.line.state.lock();
            state.trims += 1;
            let model = state.models.entry((shard, stream)).or_default();
            model.start = start;
            model.records = model.records.split_off(&start);
            state.starts.insert((shard, stream), start);
        }
        self.line.record(
            shard,
            &RecordView {
                stream,
                offset: start,
                kind,
                tag: 0,
                bytes: &[],
            },
        );
    }

    /// Steps until there is no work left for now. Returns the last step.
    fn run(&mut self) -> Step {
        let steps = (0..100_000).map(|_| self.filer.step(&self.line, self.now_ms));
        let last = steps.into_iter().find(|step| *step != Step::Worked);
        last.expect("the background never comes to rest")
    }

    /// Does all work that is due now, some time later, and much later.
    fn settle(&mut self) {
        for later_ms in [0, 5_000, HOUR_MS] {
            self.now_ms += later_ms;
            assert_eq!(self.run(), Step::Idle, "{:?}", self.filer.failure());
        }
    }

    fn roll_and_settle(&mut self) {
        self.line.roll();
        self.settle();
    }

    fn extents(&self, shard: u16) -> usize {
        self.filer.extents().shard(ShardId(shard)).len()
    }

    /// Checks that filed records, starts and nexts are those of the model.
    fn check(&self) {
        let models = self.line.state.lock().models.clone();
        let read = read_all(self.filer.extents());
        assert_eq!(read.len(), models.len());
        for (stream, model) in models {
            assert_eq!(read[&stream], model, "{stream:?}");
        }
    }

    /// Returns the files that contain these bytes, under any name.
    fn files_with(&self, bytes: &[u8]) -> Vec<String> {
        let holds = |path: &String| {
            let (volatile, durable) = self.disk.images(path).unwrap();
            [volatile, durable]
                .iter()
                .any(|image| image.windows(bytes.len()).any(|at| at == bytes))
        };
        self.disk
            .files()
            .into_iter()
            .map(|(path, _)| path)
            .filter(holds)
            .collect()
    }
}

fn read_all(extents: &ExtentSet) -> Models {
    let mut models = Models::new();
    for shard in (0..SHARDS).map(ShardId) {
        for summary in extents.streams(shard).unwrap() {
            let StreamSummary {
                stream,
                start,
                next,
                ..
            } = summary.unwrap();
            let mut model = Model {
                start,
                next,
                ..Model::default()
            };
            let flow = extents.read(shard, stream, start, &mut |record| {
                assert_eq!(record.tag, 5);
                let twice = model.records.insert(record.offset, record.payload.to_vec());
                assert_eq!(twice, None);
                ControlFlow::Continue(())
            });
            assert!(flow.unwrap().is_continue());
            models.insert((shard, stream), model);
        }
    }
    models
}

#[test]
fn sealed_segment_is_filed_by_stream_and_survives_a_restart() {
    let mut world = World::new();
    for round in 0..50_u8 {
        world.append(0, 7, &[round; 30]);
        world.append(1, 9, &[round; 3]);
        world.append(0, 2, &[round; 100]);
    }
    world.trim(0, 2, 10);
    world.roll_and_settle();
    world.check();
    let files: Vec<_> = world
        .disk
        .files()
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(
        files
            .iter()
            .filter(|path| path.starts_with("extents/"))
            .count(),
        2
    );
    assert!(world.filer.failure().is_none());
    let world = world.reopen();
    world.check();
    let manifest = Manifest::load(&*world.disk).unwrap().unwrap();
    assert_eq!(
        (manifest.sequence, manifest.filed),
        (1, Position(SEGMENT_SIZE))
    );
    assert_eq!(
        (manifest.shards[0].index, manifest.shards[1].index),
        (Index(101), Index(50))
    );
}

#[test]
fn void_block_is_not_filed() {
    let mut world = World::new();
    world.append(0, 1, b"stays");
    world.append(0, 1, b"void");
    world.line.put(BlockKind::Cut, ShardId(0), Index(2), vec![]);
    {
        let mut state = world.line.state.lock();
        state.indexes.insert(ShardId(0), 1);
        let model = state.models.get_mut(&(ShardId(0), StreamId(1))).unwrap();
        (model.next, _) = (1, model.records.remove(&1));
    }
    world.append(0, 1, b"instead");
    world.roll_and_settle();
    world.check();
    assert_eq!(world.files_with(b"void").len(), 1);
}

#[test]
fn damaged_sealed_segment_stops_filing_and_is_named() {
    let mut world = World::new();
    world.append(0, 1, b"acked");
    world.line.roll();
    world
        .disk
        .flip(
            &segment::path(1),
            (4096 + BLOCK_HEADER_SIZE as u64 + 25) * 8,
        )
        .unwrap();
    assert_eq!(world.run(), Step::Failed);
    let failure = world.filer.failure().unwrap().to_string();
    assert_eq!(
        failure,
        "line/00000000000000000001.seg is damaged at position 4096"
    );
    assert_eq!(world.filer.step(&world.line, world.now_ms), Step::Failed);
    assert_eq!(world.line.sealed_count(), 1);
}

#[test]
fn spares_are_prepared_and_filed_segments_recycled() {
    let mut world = World::new();
    world.settle();
    assert_eq!(world.line.spares.ready(), 1);
    for round in 0..40_u8 {
        world.append(0, 1, &[round; 5000]);
        world.settle();
        assert!((1..=3).contains(&world.line.spares.ready()));
    }
    // Spares, the reserve and the manifest, and hardly more than the records themselves.
    assert!(world.disk.used() < 5 * SEGMENT_SIZE + 2 * 40 * 5000);
}

#[test]
fn line_far_ahead_of_filing_gets_no_spare() {
    let mut world = World::new();
    while world.line.spares.take().is_some() {}
    for round in 0..6_u8 {
        world.append(0, 1, &[round; 100]);
        world.line.roll();
    }
    assert_eq!(world.line.spares.ready(), 0);
    while world.line.sealed_count() > 4 {
        assert_eq!(world.filer.step(&world.line, world.now_ms), Step::Worked);
        // Only filed segments came back; no spare was created.
        assert!(world.line.spares.ready() <= 6 - world.line.sealed_count());
    }
    world.settle();
    world.check();
}
