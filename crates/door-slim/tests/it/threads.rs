//! Clients on several threads, as a node serves them: a message is sent by the thread that has
//! received it if the receiver's task is idle.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use door::PassEnd;
use platform::Counter;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::agent::Carrier;
use crate::{Agent, Bench, until};

const ONE: u32 = 1;

/// A thread that serves connections, until it is dropped.
struct Worker {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::spawn(PassEnd::new());
                // An error means that the sender was dropped, which ends the thread too.
                let _ = stopped.await;
            });
        });
        Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// A node that serves its connections on two threads, in turn.
struct TwoThreads {
    bench: Bench,
    /// The number of times that the task of each connection was polled.
    polls: Arc<Mutex<Vec<Arc<AtomicUsize>>>>,
}

impl TwoThreads {
    async fn new() -> Self {
        let mut bench = Bench::new().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        bench.address = listener.local_addr().unwrap();
        let polls: Arc<Mutex<Vec<_>>> = Arc::default();
        let (door, counts) = (bench.door.clone(), polls.clone());
        tokio::spawn(async move {
            let workers = [Worker::start(), Worker::start()];
            for worker in workers.iter().cycle() {
                let (socket, _) = listener.accept().await.unwrap();
                let socket = socket.into_std().unwrap();
                let count = Arc::new(AtomicUsize::new(0));
                counts.lock().unwrap().push(count.clone());
                let door = door.clone();
                worker.handle.spawn(async move {
                    let socket = TcpStream::from_std(socket).unwrap();
                    let mut serving = Box::pin(door.serve(net::split_tcp(socket).unwrap()));
                    poll_fn(|cx| {
                        count.fetch_add(1, Ordering::Relaxed);
                        serving.as_mut().poll(cx)
                    })
                    .await;
                });
            }
        });
        Self { bench, polls }
    }

    /// The number of times that the task of a connection was polled.
    fn polls(&self, connection: usize) -> usize {
        self.polls.lock().unwrap()[connection].load(Ordering::Relaxed)
    }
}

/// Sends messages of `size` bytes from the first to the second client, one at a time. Returns how
/// often the task of a connection was polled meanwhile.
async fn polls_for_messages(connection: usize, count: u8, size: usize) -> usize {
    let threads = TwoThreads::new().await;
    let mut a = Agent::subscribed(&threads.bench, "a", 1).await;
    let mut b = Agent::subscribed(&threads.bench, "b", 2).await;
    let before = threads.polls(connection);
    for index in 0..count {
        let payload = vec![index; size];
        a.publish(b.name(), ONE, &payload);
        assert_eq!(b.received().await.payload, payload);
    }
    threads.polls(connection) - before
}

#[tokio::test]
async fn message_to_an_idle_client_of_another_thread_does_not_wake_its_task() {
    let polls = polls_for_messages(1, 100, 1).await;
    // A few are left for what the client itself sends, such as WINDOW_UPDATE.
    assert!(polls < 10, "{polls} polls for 100 messages");
}

#[tokio::test]
async fn one_request_polls_the_senders_task_once() {
    let polls = polls_for_messages(0, 100, 1).await;
    assert!(polls < 120, "{polls} polls for 100 messages");
}

#[tokio::test]
async fn large_queue_is_sent_by_the_receivers_task() {
    assert!(polls_for_messages(1, 20, 40_000).await >= 20);
}

#[tokio::test]
async fn messages_behind_a_full_window_arrive_in_order_once_the_client_reads() {
    const COUNT: u8 = 200;
    let threads = TwoThreads::new().await;
    let bench = &threads.bench;
    let mut a = Agent::subscribed(bench, "a", 1).await;
    let mut b = Agent::subscribed(bench, "b", 2).await;
    for index in 0..COUNT {
        a.publish(b.name(), ONE, &[index; 1024]);
        bench
            .counted(Counter::Delivered, u64::from(index) + 1)
            .await;
    }
    // The client has a window of 64 KiB and reads nothing yet.
    let queued = || {
        let connections = bench.node.messaging().connections();
        connections.iter().map(|it| it.queued_bytes).sum::<usize>()
    };
    until("messages to wait", || queued() > 100 << 10).await;
    for index in 0..COUNT {
        assert_eq!(b.received().await.payload, [index; 1024]);
    }
    until("the queue to be empty", || queued() == 0).await;
    a.publish(b.name(), ONE, b"one more");
    assert_eq!(b.received().await.payload, b"one more");
}

/// Sends `count` numbered messages, a few at a time.
async fn send_numbered(mut sender: Agent, to: slim::Name<'static>, by: u8, count: u32) -> Agent {
    for number in 0..count {
        let [a, b, c, d] = number.to_be_bytes();
        sender.publish(to, ONE, &[by, a, b, c, d]);
        if number % 7 < 3 {
            tokio::task::yield_now().await;
        }
    }
    sender
}

#[tokio::test]
async fn two_threads_send_to_one_client_that_sends_itself() {
    const COUNT: u32 = 2_000;
    let threads = TwoThreads::new().await;
    let bench = &threads.bench;
    let mut receiver = Agent::subscribed(bench, "receiver", 1).await;
    let first = Agent::subscribed(bench, "first", 2).await;
    let second = Agent::subscribed(bench, "second", 3).await;
    // Over a WebSocket, a queue is always sent by the client's task.
    let mut last = Agent::subscribed_over(bench, Carrier::WebSocket, "last", 4).await;
    let (to, by_receiver) = (receiver.name(), last.name());
    let senders = [(first, 0), (second, 1)]
        .map(|(sender, by)| tokio::spawn(send_numbered(sender, to, by, COUNT)));
    let mut next = [0; 2];
    for number in 0..2 * COUNT {
        let payload = receiver.received().await.payload;
        let sent: [u8; 4] = payload[1..].try_into().unwrap();
        let next = &mut next[usize::from(payload[0])];
        assert_eq!(u32::from_be_bytes(sent), *next, "sender {}", payload[0]);
        *next += 1;
        receiver.publish(by_receiver, ONE, &number.to_be_bytes());
    }
    for number in 0..2 * COUNT {
        assert_eq!(last.received().await.payload, number.to_be_bytes());
    }
    for sender in senders {
        sender.await.unwrap();
    }
}

/// Sends requests one after the other; each waits for the reply to the one before.
async fn request_numbered(mut requester: Agent, to: slim::Name<'static>, by: u8, count: u32) {
    for number in 0..count {
        let [a, b, c, d] = number.to_be_bytes();
        let request = [by, a, b, c, d];
        requester.publish(to, ONE, &request);
        assert_eq!(requester.received().await.payload, request);
    }
}

#[tokio::test]
async fn requests_from_two_threads_to_one_client_are_all_answered() {
    const COUNT: u32 = 2_000;
    let threads = TwoThreads::new().await;
    let bench = &threads.bench;
    let mut responder = Agent::subscribed(bench, "responder", 1).await;
    let first = Agent::subscribed(bench, "first", 2).await;
    let second = Agent::subscribed(bench, "second", 3).await;
    let names = [first.name(), second.name()];
    let to = responder.name();
    let requesters = [(first, 0), (second, 1)]
        .map(|(requester, by)| tokio::spawn(request_numbered(requester, to, by, COUNT)));
    for _ in 0..2 * COUNT {
        let request = responder.received().await.payload;
        responder.publish(names[usize::from(request[0])], ONE, &request);
    }
    for requester in requesters {
        requester.await.unwrap();
    }
}
