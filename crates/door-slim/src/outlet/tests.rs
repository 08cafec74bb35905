use std::sync::Arc;
use std::task::Wake;

use super::*;

/// A client whose task is at work or idle.
struct Fake {
    is_idle: bool,
    sends: AtomicUsize,
}

impl Receiver for Fake {
    fn try_send(&self, outlet: &SlimOutlet) -> bool {
        self.sends.fetch_add(1, Ordering::Relaxed);
        while self.is_idle && outlet.take().is_some() {}
        self.is_idle
    }
}

/// Counts the wakes of a task.
#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Queues messages for a client and flushes them. Returns the numbers of sends by this thread and
/// of wakes of the client's task.
fn flush(fake: Option<bool>, sizes: &[usize]) -> (usize, usize) {
    let outlet = SlimOutlet::new(String::new(), usize::MAX, Framing::Grpc);
    let client = Arc::new(Fake {
        is_idle: fake == Some(true),
        sends: AtomicUsize::new(0),
    });
    if fake.is_some() {
        let client = Arc::downgrade(&client);
        outlet.set_receiver(client);
    }
    let task = Arc::<Task>::default();
    let waker = Waker::from(task.clone());
    outlet.register(&Context::from_waker(&waker));
    for (index, size) in sizes.iter().enumerate() {
        let put = outlet.put(&[], &vec![7; *size].into());
        assert_eq!(put == Put::First, index == 0);
    }
    outlet.flush();
    let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    (of(&client.sends), of(&task.0))
}

#[test]
fn flush_sends_for_an_idle_client_without_waking_its_task() {
    assert_eq!(flush(Some(true), &[100, 100]), (1, 0));
}

#[test]
fn flush_wakes_the_task_of_a_busy_client() {
    assert_eq!(flush(Some(false), &[100]), (1, 1));
}

#[test]
fn flush_of_a_large_queue_wakes_the_task() {
    assert_eq!(flush(Some(true), &[DIRECT_SIZE_MAX / 2; 2]), (0, 1));
    assert_eq!(flush(Some(true), &[DIRECT_SIZE_MAX / 2; 1]), (1, 0));
}

#[test]
fn flush_without_a_receiver_wakes_the_task() {
    assert_eq!(flush(None, &[100]), (0, 1));
}

#[test]
fn flush_of_a_queue_that_was_sent_meanwhile_does_nothing() {
    assert_eq!(flush(Some(false), &[]), (0, 0));
}
