//! Many streams with few records each.

use super::*;
use crate::extent::{Entry, Identity, RecordRef, Writer};

const STREAMS: u64 = 100_000;

/// Ids as a hash would choose them, ascending.
fn streams() -> impl Iterator<Item = StreamId> {
    (0..STREAMS).map(|number| StreamId(number * (u64::MAX / STREAMS) + number % 7))
}

/// Writes an extent with `count` records of every stream, from offset `first` on.
fn write(disk: &dyn Disk, number: u64, first: u64, count: u64) -> Identity {
    let identity = Identity {
        journal_id: JOURNAL,
        shard: ShardId(0),
        number,
        begin: Position((number - 1) * SEGMENT_SIZE),
        end: Position(number * SEGMENT_SIZE),
        index: Index(number),
        term: 0,
    };
    let mut writer = Writer::create(disk, identity).unwrap();
    for stream in streams() {
        writer.stream(&Entry::new(stream)).unwrap();
        for offset in first..first + count {
            let payload = (stream.0 ^ offset).to_le_bytes().repeat(3);
            let payload = &payload[..];
            let record = RecordRef {
                stream,
                offset,
                time_ms: 1_700_000_000_000,
                tag: 5,
                payload,
            };
            writer.record(&record).unwrap();
        }
    }
    writer.finish().unwrap();
    disk.rename(&identity.path_unfinished(), &identity.path())
        .unwrap();
    identity
}

#[test]
fn many_small_streams_take_little_memory_and_one_extent() {
    let disk = forms(1);
    let mut manifest = Manifest::new(JOURNAL, SHARDS);
    for (number, first, count) in [(1, 0, 3), (2, 3, 3), (3, 6, 2), (4, 8, 2)] {
        manifest.shards[0]
            .extents
            .push(write(&*disk, number, first, count));
    }
    (manifest.extent_next, manifest.filed) = (5, Position(4 * SEGMENT_SIZE));
    manifest.prepare(&*disk).unwrap();
    Manifest::commit(&*disk).unwrap();

    let mut world = World::open(disk, Models::new(), OPTIONS);
    world.settle();
    let extents = world.filer.extents();
    assert_eq!(extents.count(), 1);
    // The line's entry of a stream takes the rest of the 150 bytes per stream.
    assert!(
        extents.memory() as u64 / STREAMS <= 2,
        "{} bytes",
        extents.memory()
    );
    let disk_bytes = extents.size() as f64 / STREAMS as f64;
    assert!(disk_bytes < 10.0 * 30.0 + 30.0, "{disk_bytes} bytes");

    let found = extents.streams(ShardId(0)).unwrap().map(Result::unwrap);
    assert!(
        found
            .map(|found| (found.stream, found.next))
            .eq(streams().map(|stream| (stream, 10)))
    );
    for stream in streams().step_by(997) {
        let mut offset = 0;
        let flow = extents.read(ShardId(0), stream, 0, &mut |record| {
            assert_eq!(record.offset, offset);
            assert_eq!(record.payload[..8], (stream.0 ^ offset).to_le_bytes());
            offset += 1;
            ControlFlow::Continue(())
        });
        assert!(flow.unwrap().is_continue());
        assert_eq!(offset, 10);
    }
}
