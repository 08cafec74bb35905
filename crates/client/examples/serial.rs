//! Sequential calls, and an error.
//!
//! `cargo run -p telpher-client --example serial`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use telpher_client::{Caller, Request, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new()
        .handle("echo", |request: Request| async move { Ok(request.body) })
        .handle("double", |request: Request| async move {
            let number: i64 = std::str::from_utf8(&request.body)?.parse()?;
            Ok((2 * number).to_string())
        });
    let listening = server.listen("tcp://127.0.0.1:0").await?;
    println!("a server listens at {}", listening.address());

    let caller = Caller::connect(listening.address()).await?;
    for word in ["one", "call", "at", "a", "time"] {
        let reply = caller.call("echo", word).await?;
        println!("echo {word:?} -> {reply:?}");
    }
    let reply = caller
        .call("double", "21")
        .deadline(Duration::from_secs(1))
        .await?;
    println!("double 21 -> {reply:?}");

    for (method, body) in [("double", "many"), ("dubble", "21")] {
        if let Err(error) = caller.call(method, body).await {
            println!("{method} {body:?} -> {error}");
        }
    }
    Ok(())
}
