use std::io::IoSlice;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use proptest::prelude::*;

use super::*;
use crate::stream::Following;

/// Takes `room` bytes, of several buffers at once, and then blocks.
#[derive(Default)]
pub(crate) struct LimitedSink {
    pub(crate) taken: Mutex<Vec<u8>>,
    pub(crate) room: AtomicUsize,
    broken: std::sync::atomic::AtomicBool,
}

impl Sink for LimitedSink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(self.room.load(Ordering::Relaxed));
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.room.fetch_sub(count, Ordering::Relaxed);
        self.taken.lock().extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn try_write_vectored(&self, buffers: &[IoSlice<'_>], _: Following) -> io::Result<usize> {
        assert!(buffers.iter().all(|buffer| !buffer.is_empty()));
        let bytes: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.to_vec()).collect();
        self.try_write(&bytes)
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.room.load(Ordering::Relaxed) {
            0 => Poll::Pending,
            _ => Poll::Ready(Ok(())),
        }
    }

    fn finish(&self) {}

    fn close(&self) {}
}

struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn first_push_after_a_flush_must_flush() {
    let sink = Arc::new(LimitedSink::default());
    sink.room.store(100, Ordering::Relaxed);
    let outbox = Outbox::new(sink.clone());
    assert_eq!(outbox.push(|out| out.push(1)), Pushed::First);
    assert_eq!(outbox.push(|out| out.push(2)), Pushed::Queued);
    outbox.flush();
    assert_eq!(outbox.push(|out| out.push(3)), Pushed::First);
    assert_eq!(*sink.taken.lock(), [1, 2]);
}

#[test]
fn blocked_sink_wakes_the_task_which_continues() {
    let sink = Arc::new(LimitedSink::default());
    sink.room.store(3, Ordering::Relaxed);
    let outbox = Outbox::new(sink.clone());
    let counter = Arc::new(Counter(AtomicUsize::new(0)));
    let waker = Waker::from(counter.clone());
    let mut cx = Context::from_waker(&waker);
    assert!(outbox.poll_drain(&mut cx).is_pending());

    outbox.push(|out| out.extend_from_slice(b"abcdef"));
    outbox.flush();
    assert_eq!(
        (outbox.queued_size(), counter.0.load(Ordering::Relaxed)),
        (3, 1)
    );
    outbox.push(|out| out.extend_from_slice(b"ghi"));
    outbox.flush();
    assert_eq!(outbox.queued_size(), 6);

    sink.room.store(100, Ordering::Relaxed);
    assert!(outbox.poll_drain(&mut cx).is_pending());
    assert_eq!(&*sink.taken.lock(), b"abcdefghi");
    assert_eq!(outbox.queued_size(), 0);
}

#[test]
fn failed_sink_closes_the_outbox() {
    let sink = Arc::new(LimitedSink::default());
    sink.broken.store(true, Ordering::Relaxed);
    let outbox = Outbox::new(sink);
    outbox.push(|out| out.push(1));
    outbox.flush();
    assert!(outbox.is_closed());
    assert_eq!(outbox.push(|out| out.push(1)), Pushed::Closed);
    assert_eq!(outbox.queued_size(), 0);
}

#[test]
fn concurrent_pushes_are_neither_lost_nor_reordered() {
    let sink = Arc::new(LimitedSink::default());
    sink.room.store(usize::MAX, Ordering::Relaxed);
    let outbox = Arc::new(Outbox::new(sink.clone()));
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let outbox = outbox.clone();
            scope.spawn(move || {
                for index in 0..10_000u32 {
                    let pushed = outbox.push(|out| {
                        out.push(thread);
                        out.extend_from_slice(&index.to_le_bytes());
                    });
                    if pushed == Pushed::First {
                        outbox.flush();
                    }
                }
            });
        }
    });
    let mut next = [0u32; 4];
    for entry in sink.taken.lock().chunks_exact(5) {
        let index = u32::from_le_bytes([entry[1], entry[2], entry[3], entry[4]]);
        assert_eq!(index, next[usize::from(entry[0])]);
        next[usize::from(entry[0])] += 1;
    }
    assert_eq!(next, [10_000; 4]);
}

proptest! {
    #[test]
    fn bytes_arrive_in_order_for_any_short_writes(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 1..30),
        rooms in prop::collection::vec(1usize..40, 1..20),
    ) {
        let sink = Arc::new(LimitedSink::default());
        let outbox = Outbox::new(sink.clone());
        let waker = Waker::noop();
        let mut cx = Context::from_waker(waker);
        for piece in &pieces {
            outbox.push(|out| out.extend_from_slice(piece));
            outbox.flush();
        }
        let mut rooms = rooms.iter().cycle();
        while outbox.queued_size() > 0 {
            sink.room.store(*rooms.next().unwrap(), Ordering::Relaxed);
            prop_assert!(outbox.poll_drain(&mut cx).is_pending());
        }
        prop_assert_eq!(&*sink.taken.lock(), &pieces.concat());
    }
}
