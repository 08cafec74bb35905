//! An echo server and a load generator, to see the effect of a change.
//!
//! ```text
//! cargo run --release -p telpher-client --example echo_load -- server tcp://127.0.0.1:7410
//! cargo run --release -p telpher-client --example echo_load -- load tcp://127.0.0.1:7410 callback 64
//! ```
//!
//! Modes: serial, concurrent, tasks, batch, callback, blocking. The results are approximate; use
//! `telpher bench rpc` for measurements.

#![expect(clippy::print_stdout, reason = "what it measures is what it is for")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use telpher_client::{Callbacks, Caller, Server, blocking};
use tokio::sync::Notify;

/// The allocator of the `telpher` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BODY: [u8; 128] = [7; 128];

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match arguments[..] {
        ["server", address] => runtime.block_on(serve(address)),
        ["load", address, "blocking"] => load_blocking(address),
        ["load", address, mode] => runtime.block_on(spawn_load(address, mode, 1)),
        ["load", address, mode, depth] => {
            runtime.block_on(spawn_load(address, mode, depth.parse()?))
        }
        _ => Err("usage: echo_load server ADDRESS | load ADDRESS MODE [DEPTH]".into()),
    }
}

async fn serve(address: &str) -> Result<(), Failure> {
    let server = Server::new()
        .handle("echo", |request: telpher_client::Request| async move {
            Ok(request.body)
        })
        .handle_sync("sync", |request| Ok(request.body));
    let listening = server.listen(address).await?;
    println!("serving at {}", listening.address());
    listening.run().await;
    Ok(())
}

/// Runs in a task, because the future passed to `block_on` polls the sockets at each wake-up.
async fn spawn_load(address: &str, mode: &str, depth: usize) -> Result<(), Failure> {
    let (address, mode) = (address.to_owned(), mode.to_owned());
    tokio::spawn(async move { load(&address, &mode, depth).await }).await?
}

async fn load(address: &str, mode: &str, depth: usize) -> Result<(), Failure> {
    let caller = Caller::connect(address).await?;
    let count = calls(&caller, mode, depth, Duration::from_millis(300)).await?;
    assert!(count > 0, "nothing was answered");
    let start = now();
    let count = calls(&caller, mode, depth, Duration::from_secs(2)).await?;
    report(mode, depth, count, start.elapsed());
    Ok(())
}

async fn calls(caller: &Caller, mode: &str, depth: usize, time: Duration) -> Result<u64, Failure> {
    let end = now() + time;
    let mut count = 0;
    match mode {
        "serial" => {
            let mut times = Vec::new();
            let mut before = now();
            while before < end {
                assert_eq!(caller.call("echo", BODY).await?.len(), BODY.len());
                let after = now();
                times.push(after.duration_since(before));
                before = after;
            }
            count = times.len() as u64;
            report_median(times);
        }
        "concurrent" => {
            let bodies = std::iter::repeat_n(BODY, usize::MAX);
            let mut replies = caller.call_all("echo", bodies, depth);
            while let Some(reply) = replies.next().await {
                assert_eq!(reply?.len(), BODY.len());
                count += 1;
                if count % 1024 == 0 && now() > end {
                    break;
                }
            }
        }
        "batch" => {
            while now() < end {
                for reply in caller.call_batch("echo", vec![BODY; depth]).await {
                    assert_eq!(reply?.len(), BODY.len());
                    count += 1;
                }
            }
        }
        "tasks" => {
            let mut tasks = Vec::new();
            for _ in 0..depth {
                let caller = caller.clone();
                tasks.push(tokio::spawn(async move {
                    let mut count = 0;
                    while now() < end {
                        for _ in 0..16 {
                            caller.call("echo", BODY).await?;
                        }
                        count += 16;
                    }
                    Ok::<u64, telpher_client::CallError>(count)
                }));
            }
            for task in tasks {
                count += task.await??;
            }
        }
        "callback" => count = callbacks(caller, depth, end).await,
        _ => return Err("modes: serial, concurrent, tasks, batch, callback, blocking".into()),
    }
    Ok(count)
}

/// Keeps `depth` calls in flight: every reply makes the next call.
async fn callbacks(caller: &Caller, depth: usize, end: Instant) -> u64 {
    struct Shared {
        callbacks: std::sync::OnceLock<Callbacks>,
        answered: AtomicU64,
        running: AtomicU64,
        is_over: std::sync::atomic::AtomicBool,
        done: Notify,
    }
    let shared = Arc::new(Shared {
        callbacks: std::sync::OnceLock::new(),
        answered: AtomicU64::new(0),
        running: AtomicU64::new(depth as u64),
        is_over: std::sync::atomic::AtomicBool::new(false),
        done: Notify::new(),
    });
    // A reference cycle: the load runs until the process ends.
    let seen = shared.clone();
    let callbacks = caller.callbacks("echo", move |tag, reply| {
        let shared = &*seen;
        assert_eq!(reply.map(<[u8]>::len), Ok(BODY.len()));
        let answered = shared.answered.load(Ordering::Relaxed) + 1;
        shared.answered.store(answered, Ordering::Relaxed);
        if answered.is_multiple_of(1024) && now() > end {
            shared.is_over.store(true, Ordering::Relaxed);
        }
        if shared.is_over.load(Ordering::Relaxed) {
            if shared.running.fetch_sub(1, Ordering::Relaxed) == 1 {
                shared.done.notify_one();
            }
            return;
        }
        if let Some(callbacks) = shared.callbacks.get() {
            callbacks
                .call(tag, BODY)
                .expect("there is room for one that replaces one");
        }
    });
    let callbacks = shared.callbacks.get_or_init(|| callbacks);
    for tag in 0..depth as u64 {
        callbacks
            .call(tag, BODY)
            .expect("there is room at the beginning");
    }
    shared.done.notified().await;
    shared.answered.load(Ordering::Relaxed)
}

fn load_blocking(address: &str) -> Result<(), Failure> {
    let mut client = blocking::Client::connect(address)?;
    let start = now();
    let mut times = Vec::new();
    let mut before = start;
    while before.duration_since(start) < Duration::from_secs(2) {
        client.call_with("echo", &BODY, |reply| assert_eq!(reply.len(), BODY.len()))?;
        let after = now();
        times.push(after.duration_since(before));
        before = after;
    }
    let count = times.len() as u64;
    report_median(times);
    report("blocking", 1, count, start.elapsed());
    Ok(())
}

fn report_median(mut times: Vec<Duration>) {
    times.sort_unstable();
    println!(
        "            half of them within {:?}",
        times[times.len() / 2]
    );
}

fn report(mode: &str, depth: usize, count: u64, time: Duration) {
    let rate = count as f64 / time.as_secs_f64();
    println!(
        "{mode:>10} {depth:>6}: {rate:>10.0} calls/s, {:.2} us each",
        1e6 / rate
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "a load on real sockets is timed by the real clock"
)]
fn now() -> Instant {
    Instant::now()
}
