//! Many calls: ten at a time through a sliding window, and all at once.
//!
//! `cargo run -p telpher-client --example concurrent`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use telpher_client::{Caller, Request, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new().handle("square", |request: Request| async move {
        let number: u64 = std::str::from_utf8(&request.body)?.parse()?;
        // Some calls take longer; the replies come in order.
        tokio::time::sleep(Duration::from_millis(number % 3)).await;
        Ok((number * number).to_string())
    });
    let listening = server.listen("tcp://127.0.0.1:0").await?;
    let caller = Caller::connect(listening.address()).await?;

    let numbers = (0..100).map(|number: u64| number.to_string());
    let mut replies = caller.call_all("square", numbers, 10);
    let mut sum = 0;
    while let Some(reply) = replies.next().await {
        sum += std::str::from_utf8(&reply?)?.parse::<u64>()?;
    }
    println!("ten at a time: the squares of 0 to 99 add up to {sum}");

    let outcomes = caller.call_batch("square", ["3", "4", "five"]).await;
    for outcome in outcomes {
        match outcome {
            Ok(reply) => println!("at once: {reply:?}"),
            Err(error) => println!("at once: {error}"),
        }
    }
    Ok(())
}
