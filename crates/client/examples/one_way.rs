//! Messages without a reply: the sender waits only until the peer has room.
//!
//! `cargo run -p telpher-client --example one_way`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telpher_client::{Caller, Request, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let total = Arc::new(AtomicU64::new(0));
    let (adding, reading) = (total.clone(), total.clone());
    let server = Server::new()
        .handle("add", move |request: Request| {
            let total = adding.clone();
            async move {
                let number: u64 = std::str::from_utf8(&request.body)?.parse()?;
                total.fetch_add(number, Ordering::Relaxed);
                Ok("")
            }
        })
        .handle("total", move |_| {
            let total = reading.load(Ordering::Relaxed);
            async move { Ok(total.to_string()) }
        });
    let listening = server.listen("tcp://127.0.0.1:0").await?;
    let caller = Caller::connect(listening.address()).await?;

    for number in 1..=10_000 {
        caller.one_way("add", number.to_string()).await?;
    }
    println!("sent 10000 numbers, none was answered");
    // A later call on the same connection is handled after the messages.
    let total = caller.call("total", "").await?;
    println!("they add up to {total:?}");
    Ok(())
}
