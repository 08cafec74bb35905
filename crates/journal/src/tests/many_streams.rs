use super::*;
use crate::filing::Step;

const STREAMS: u64 = 6;

fn value(number: u64) -> Vec<u8> {
    vec![number as u8; 200]
}

/// Appends 300 records to all streams; the first ones are filed.
fn written(disk: &Arc<SimulatedDisk>) -> SteppedJournal {
    let mut stepped = open(disk, 1);
    for number in 0..300 {
        stepped.append(StreamId(number % STREAMS), &value(number));
        if number % 30 == 29 {
            stepped.settle();
        }
        if number == 200 {
            while stepped.background.step(1) == Step::Worked {}
        }
    }
    stepped.settle();
    let journal = &stepped.journal;
    assert!(journal.filing().filed_segments > 0 && journal.filing().waiting > 0);
    stepped
}

/// Returns what `read_many` shows of each stream: offsets, and whether the payloads are right.
fn records_read(stepped: &SteppedJournal, wanted: &mut Wanted) -> Vec<(u64, u64)> {
    let mut records_read = Vec::new();
    let read = stepped.journal.read_many(SHARD, wanted, |stream, record| {
        let number = record.offset * STREAMS + stream.0;
        assert_eq!((&record.payload[..], record.tag), (&value(number)[..], 3));
        records_read.push((stream.0, record.offset));
        Ok::<_, ReadError>(())
    });
    read.unwrap();
    records_read
}

#[test]
fn many_streams_are_read_each_from_its_offset() {
    let disk = disk();
    let stepped = written(&disk);
    drop(stepped);
    let stepped = open(&disk, 2);
    let mut wanted = Wanted::from([(StreamId(1), 0), (StreamId(4), 30), (StreamId(99), 7)]);
    let records_read = records_read(&stepped, &mut wanted);
    for (stream, from) in [(1, 0), (4, 30)] {
        let of = records_read
            .iter()
            .filter(|one| one.0 == stream)
            .map(|one| one.1);
        assert!(of.eq(from..50), "{stream}: {records_read:?}");
    }
    let behind = [(StreamId(1), 50), (StreamId(4), 50), (StreamId(99), 7)];
    assert_eq!(wanted, Wanted::from(behind));
    assert_eq!(self::records_read(&stepped, &mut wanted), []);
}

#[test]
fn trimmed_records_are_skipped_and_an_error_ends_the_read() {
    let disk = disk();
    let mut stepped = written(&disk);
    stepped
        .journal
        .lock(SHARD, 0)
        .trim(StreamId(2), 45)
        .unwrap();
    stepped.settle();
    let mut wanted = Wanted::from([(StreamId(2), 0)]);
    let found = records_read(&stepped, &mut wanted);
    assert!(found.iter().map(|one| one.1).eq(45..50), "{found:?}");
    let mut wanted = Wanted::from([(StreamId(0), 0)]);
    let mut seen = 0;
    let stopped = stepped.journal.read_many(SHARD, &mut wanted, |_, record| {
        seen += 1;
        let start = record.offset;
        match seen < 20 {
            true => Ok(()),
            false => Err(ReadError::Trimmed { start }),
        }
    });
    assert!(matches!(stopped, Err(ReadError::Trimmed { start: 19 })));
    assert_eq!(seen, 20);
}

#[test]
fn the_line_is_read_once_for_all_streams() {
    let disk = disk();
    drop(written(&disk));
    let stepped = open(&disk, 2);
    let unfiled = stepped.journal.filing().unfiled_bytes;
    assert!(unfiled > 10_000, "{unfiled}");
    // The last record of each stream, which is not filed.
    let from = |stream| (StreamId(stream), 45);
    let before = disk.read();
    let found = records_read(&stepped, &mut (0..STREAMS).map(from).collect());
    let read = disk.read() - before;
    assert_eq!(found.len() as u64, 5 * STREAMS);
    assert!(read <= unfiled, "{read} of {unfiled}");
}

#[test]
fn more_blocks_than_a_window_are_read_each_once() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    // Each record is in a block of its own, and the streams begin in different windows.
    for number in 0..1_300 {
        let stream = if number < 700 { 0 } else { number % STREAMS };
        stepped.append(StreamId(stream), b"one");
        stepped.settle();
    }
    let count = |stream| {
        stepped
            .journal
            .stream(SHARD, StreamId(stream))
            .unwrap()
            .next_durable
    };
    let counts: Vec<u64> = (0..STREAMS).map(count).collect();
    // Not durable, so not shown.
    stepped.append(StreamId(0), b"one");
    let mut wanted: Wanted = (0..STREAMS).map(|stream| (StreamId(stream), 3)).collect();
    let mut seen = Wanted::from_iter(wanted.clone());
    let mut shown = 0;
    let read = stepped
        .journal
        .read_many(SHARD, &mut wanted, |stream, record| {
            let next = seen.get_mut(&stream).unwrap();
            assert_eq!((record.offset, &record.payload[..]), (*next, &b"one"[..]));
            *next += 1;
            shown += 1;
            Ok::<_, ReadError>(())
        });
    read.unwrap();
    assert_eq!(shown, 1_300 - 3 * STREAMS);
    let ends: Wanted = (0..STREAMS).map(StreamId).zip(counts).collect();
    assert_eq!((&seen, &wanted), (&ends, &ends));
}
