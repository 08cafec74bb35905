//! A client without an async runtime: for scripts, for threads, and for the lowest latency.
//!
//! `cargo run -p telpher-client --example blocking`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use telpher_client::{Request, Server, blocking};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The server needs a runtime, which runs on another thread.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let server = Server::new().handle("echo", |request: Request| async move { Ok(request.body) });
    let listening = runtime.block_on(server.listen("tcp://127.0.0.1:0"))?;

    let mut client = blocking::Client::connect(listening.address())?;
    let reply = client.call("echo", "hello")?;
    println!("echo \"hello\" -> {reply:?}");

    let replies = client.call_batch("echo", (0..1000).map(|number| number.to_string()));
    let failed = replies.iter().filter(|reply| reply.is_err()).count();
    println!("{} calls at once, {failed} failed", replies.len());

    if let Err(error) = client.call("eco", "hello") {
        println!("eco \"hello\" -> {error}");
    }
    Ok(())
}
