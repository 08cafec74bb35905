use recordbatch::{Builder, Compression, Template};

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn key(offset: i64) -> Key {
    (TopicId([1; 16]), 0, offset)
}

/// Returns a zstd batch, whose decompressed size is unknown.
fn batch() -> Vec<u8> {
    let mut builder = Builder::new();
    builder.push(1, None, Some(b"value"), &[]);
    let mut bytes = Vec::new();
    builder.finish_compressed(&Template::default(), Compression::Zstd, &mut bytes);
    bytes
}

fn hold(budget: &Arc<Unpacked>, offset: i64, size: usize, now_ns: u64) -> Option<Arc<Lease>> {
    let bytes = batch();
    let (batch, _) = Batch::split(&bytes).unwrap();
    let reservation = budget.reserve(&batch, now_ns, Waker::noop())?;
    let payload = vec![0; size];
    Some(budget.hold(key(offset), *batch.header(), payload, reservation, now_ns))
}

#[test]
fn all_batches_together_stay_below_the_limit() {
    let budget = Unpacked::new(0);
    assert_eq!(budget.limit, UNPACKED_SIZE_MAX as u64);
    let first = hold(&budget, 1, 1_000, 0).unwrap();
    assert_eq!(budget.held_bytes(), 1_000);
    assert!(
        hold(&budget, 2, 1_000, 0).is_none(),
        "it may take all of it"
    );
    drop(first);
    assert_eq!(budget.held_bytes(), 0);
    assert!(hold(&budget, 2, 1_000, 0).is_some());
}

#[test]
fn idle_batches_are_reclaimed() {
    let budget = Unpacked::new(0);
    let idle = hold(&budget, 1, 1_000, 0).unwrap();
    assert!(idle.payload(SECOND_NS / 2).is_some());
    assert!(hold(&budget, 2, 10, SECOND_NS).is_none(), "it is used");
    assert!(hold(&budget, 2, 10, 2 * SECOND_NS).is_some());
    assert!(idle.payload(2 * SECOND_NS).is_none());
    assert!(budget.find(&key(1)).is_none());
}

#[test]
fn readers_of_the_same_batch_share_it() {
    let budget = Unpacked::new(4 * UNPACKED_SIZE_MAX as u64);
    let first = hold(&budget, 1, 1_000, 0).unwrap();
    let second = hold(&budget, 1, 1_000, 0).unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert!(Arc::ptr_eq(&first, &budget.find(&key(1)).unwrap()));
    assert_eq!(budget.held_bytes(), 1_000);
}

#[test]
fn waiting_reader_is_woken_when_unpack_memory_is_freed() {
    struct Flag(std::sync::atomic::AtomicBool);
    impl std::task::Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let flag = Arc::new(Flag(false.into()));
    let budget = Unpacked::new(0);
    let first = hold(&budget, 1, 1_000, 0).unwrap();
    let bytes = batch();
    let (batch, _) = Batch::split(&bytes).unwrap();
    let waker = Waker::from(flag.clone());
    assert!(budget.reserve(&batch, 0, &waker).is_none());
    assert!(budget.let_go(0), "a reader waits");
    drop(first);
    assert!(flag.0.load(std::sync::atomic::Ordering::Relaxed));
    assert!(!budget.let_go(0));
}
