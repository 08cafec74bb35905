//! Callback calls allocate nothing, as counted by an allocator.
//!
//! Client and server run on a thread each, and their allocations are counted by thread.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use door_testing::{CountingAllocator, allocated};
use telpher_client::{Callbacks, Caller, Request, Server};
use tokio::sync::{Notify, oneshot};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Calls in flight at a time.
const DEPTH: u64 = 16;

/// Number of calls after which every table and buffer has its final size.
const WARM_UP: u64 = 5_000;

const CALLS: u64 = 20_000;

/// A server on its own thread, until it is dropped.
struct Serving {
    address: String,
    /// Number of allocations of its thread up to the last call.
    allocated: Arc<AtomicU64>,
    _stop: oneshot::Sender<()>,
}

fn serve() -> Serving {
    let allocated = Arc::new(AtomicU64::new(0));
    let counted = allocated.clone();
    let (address_sender, address) = std::sync::mpsc::channel();
    let (stop, stopped) = oneshot::channel();
    std::thread::spawn(move || {
        current_thread().block_on(async {
            // The runtime allocates its list of yielding tasks at the first one.
            tokio::task::yield_now().await;
            let counted_too = counted.clone();
            let server = Server::new()
                .handle("echo", move |request: Request| {
                    counted.store(door_testing::allocated(), Ordering::Relaxed);
                    async move { Ok(request.body) }
                })
                .handle_borrowed("borrow", move |request, reply| {
                    counted_too.store(door_testing::allocated(), Ordering::Relaxed);
                    reply.extend_from_slice(request.body());
                    Ok(())
                });
            let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
            address_sender.send(listening.address().to_owned()).unwrap();
            // Ends with the test.
            let _: Result<(), _> = stopped.await;
        });
    });
    Serving {
        address: address.recv().unwrap(),
        allocated,
        _stop: stop,
    }
}

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn bounded(test: impl Future<Output = ()>) {
    current_thread().block_on(async {
        let ended = tokio::time::timeout(Duration::from_secs(30), test).await;
        ended.expect("the test did not end within 30 s");
    });
}

/// Counts replies; each reply makes the next call.
struct Load {
    callbacks: OnceLock<Callbacks>,
    made: AtomicU64,
    answered: AtomicU64,
    /// Number of allocations of the client after the warm-up, and at the end.
    allocated: [AtomicU64; 2],
    /// Number of allocations of the server up to now.
    server: Arc<AtomicU64>,
    /// Number of allocations of the server after the warm-up, and at the end.
    server_allocated: [AtomicU64; 2],
    done: Notify,
}

impl Load {
    fn note(&self, index: usize) {
        self.allocated[index].store(allocated(), Ordering::Relaxed);
        let server = self.server.load(Ordering::Relaxed);
        self.server_allocated[index].store(server, Ordering::Relaxed);
    }

    fn take(&self, tag: u64, outcome: Result<&[u8], &telpher_client::CallError>) {
        assert_eq!(outcome.unwrap(), [tag as u8; 128]);
        let answered = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
        if answered == WARM_UP {
            self.note(0);
        }
        if answered == WARM_UP + CALLS {
            self.note(1);
            self.done.notify_one();
        }
        if self.made.fetch_add(1, Ordering::Relaxed) < WARM_UP + CALLS {
            let callbacks = self.callbacks.get().unwrap();
            callbacks.call(tag, [tag as u8; 128]).unwrap();
        }
    }
}

#[test]
fn a_call_in_callback_mode_allocates_nothing_at_both_ends() {
    check_that_calls_allocate_nothing("echo");
}

#[test]
fn a_call_of_a_borrowing_handler_allocates_nothing_at_both_ends() {
    check_that_calls_allocate_nothing("borrow");
}

fn check_that_calls_allocate_nothing(method: &str) {
    let serving = serve();
    bounded(async {
        tokio::task::yield_now().await;
        let caller = Caller::connect(&serving.address).await.unwrap();
        let load = Arc::new(Load {
            callbacks: OnceLock::new(),
            made: AtomicU64::new(DEPTH),
            answered: AtomicU64::new(0),
            allocated: Default::default(),
            server: serving.allocated.clone(),
            server_allocated: Default::default(),
            done: Notify::new(),
        });
        let taking = load.clone();
        let callbacks = caller.callbacks(method, move |tag, outcome| taking.take(tag, outcome));
        let callbacks = load.callbacks.get_or_init(|| callbacks);
        for tag in 0..DEPTH {
            callbacks.call(tag, [tag as u8; 128]).unwrap();
        }
        load.done.notified().await;
        for (counts, end) in [
            (&load.allocated, "client"),
            (&load.server_allocated, "server"),
        ] {
            let [before, after] = counts.each_ref().map(|count| count.load(Ordering::Relaxed));
            assert!(before > 0, "the counter does not count");
            assert_eq!(
                after - before,
                0,
                "allocations of the {end} in {CALLS} calls"
            );
        }
    });
}

#[test]
fn a_single_call_with_a_function_allocates_one_box() {
    let serving = serve();
    bounded(async {
        let caller = Caller::connect(&serving.address).await.unwrap();
        let answered = Arc::new((AtomicU64::new(0), Notify::new()));
        let mut before = 0;
        const ROUNDS: u64 = 200;
        for round in 0..2 * ROUNDS {
            if round == ROUNDS {
                before = allocated();
            }
            let answered = answered.clone();
            let seen = answered.clone();
            let take = move |outcome: Result<&[u8], &telpher_client::CallError>| {
                seen.0
                    .fetch_add(outcome.unwrap().len() as u64, Ordering::Relaxed);
                seen.1.notify_one();
            };
            caller.on_reply("echo", [7; 128], take).unwrap();
            answered.1.notified().await;
        }
        assert_eq!(allocated() - before, ROUNDS);
        assert_eq!(answered.0.load(Ordering::Relaxed), 2 * ROUNDS * 128);
    });
}
