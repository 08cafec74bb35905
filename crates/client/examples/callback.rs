//! Calls without futures: one function receives all replies.
//!
//! `cargo run -p telpher-client --example callback`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telpher_client::{Caller, Request, Server};
use tokio::sync::Notify;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new().handle("echo", |request: Request| async move { Ok(request.body) });
    let listening = server.listen("tcp://127.0.0.1:0").await?;
    let caller = Caller::connect(listening.address()).await?;

    const CALLS: u64 = 100_000;
    let answered = Arc::new((AtomicU64::new(0), Notify::new()));
    let seen = answered.clone();
    let callbacks = caller.callbacks("echo", move |tag, outcome| {
        // Called once per call with its tag, for replies and errors.
        if let Err(error) = outcome {
            println!("call {tag}: {error}");
        }
        if seen.0.fetch_add(1, Ordering::Relaxed) + 1 == CALLS {
            seen.1.notify_one();
        }
    });
    for tag in 0..CALLS {
        // Waits while the window is full; several calls leave in one write.
        callbacks.ready().await?;
        callbacks.call(tag, tag.to_le_bytes())?;
    }
    answered.1.notified().await;
    println!(
        "{} answers for {CALLS} calls",
        answered.0.load(Ordering::Relaxed)
    );

    let (sender, receiver) = tokio::sync::oneshot::channel();
    caller.on_reply("echo", "once", move |outcome| {
        // The receiver may be gone.
        let _ = sender.send(outcome.map(<[u8]>::to_vec).map_err(Clone::clone));
    })?;
    println!("a single call: {:?}", String::from_utf8(receiver.await??)?);
    Ok(())
}
