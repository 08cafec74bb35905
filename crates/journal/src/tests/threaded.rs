//! The journal with its threads, on the real disk.

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::disk::RealDisk;

/// Sizes from which on syncs overlap with writes: all of them, and none.
const BULK_SYNC_SIZES: [u64; 2] = [0, u64::MAX];

fn open_threaded(dir: &tempfile::TempDir, entropy: u64, bulk_sync_size: u64) -> Journal {
    let disk = Arc::new(RealDisk::new(dir.path()));
    let small = Options {
        segment_size: 256 << 10,
        bulk_sync_size,
        ..options(entropy)
    };
    Journal::open(disk, &small, || 1000).unwrap().0
}

#[test]
fn records_awaited_by_concurrent_writers_survive_a_restart() {
    BULK_SYNC_SIZES.into_iter().for_each(write_concurrently);
}

fn write_concurrently(bulk_sync_size: u64) {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_threaded(&dir, 1, bulk_sync_size);
    let write = |writer: u64| {
        for number in 0..300u64 {
            let shard = ShardId((writer % 2) as u16);
            let mut guard = journal.lock(shard, 1000);
            let payload = (writer << 32 | number).to_le_bytes();
            let appended = guard.append(StreamId(writer), Some(number), 0, &payload.repeat(40));
            drop(guard);
            assert_eq!(journal.wait(appended.unwrap().ticket), Status::Durable);
        }
    };
    std::thread::scope(|scope| {
        for writer in 0..8 {
            scope.spawn(move || write(writer));
        }
    });
    drop(journal);
    let journal = open_threaded(&dir, 2, bulk_sync_size);
    for writer in 0..8u64 {
        let shard = ShardId((writer % 2) as u16);
        let read = journal.read(shard, StreamId(writer), 0, ALL).unwrap();
        assert_eq!(read.records.len(), 300);
        for (number, record) in read.records.iter().enumerate() {
            let payload = (writer << 32 | number as u64).to_le_bytes();
            assert_eq!(
                (record.offset, &record.payload[..8]),
                (number as u64, &payload[..])
            );
        }
    }
}

#[test]
fn queued_records_are_on_disk_after_close() {
    BULK_SYNC_SIZES
        .into_iter()
        .for_each(close_with_queued_records);
}

fn close_with_queued_records(bulk_sync_size: u64) {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_threaded(&dir, 1, bulk_sync_size);
    for number in 0..5000u64 {
        let mut guard = journal.lock(SHARD, 1000);
        guard.append(STREAM, Some(number), 0, &[7; 100]).unwrap();
    }
    drop(journal);
    let journal = open_threaded(&dir, 2, bulk_sync_size);
    assert_eq!(journal.stream(SHARD, STREAM).unwrap().next_durable, 5000);
}

#[test]
fn waker_is_woken_by_the_line_thread() {
    struct Sender(mpsc::Sender<()>);
    impl Wake for Sender {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let journal = open_threaded(&dir, 1, 0);
    let (sender, woken) = mpsc::channel();
    let waker = Waker::from(Arc::new(Sender(sender)));
    for number in 0..100 {
        let mut guard = journal.lock(SHARD, 1000);
        let ticket = guard.append(STREAM, Some(number), 0, b"x").unwrap().ticket;
        drop(guard);
        if journal.notify(ticket, &waker) == Status::Pending {
            woken.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        assert_eq!(journal.status(ticket), Status::Durable);
    }
}
