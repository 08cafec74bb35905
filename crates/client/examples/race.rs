//! The first reply of several servers.
//!
//! `cargo run -p telpher-client --example race`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use telpher_client::{Caller, ListeningServer, Server};

/// Replies after a delay.
async fn runner(
    name: &'static str,
    time: Duration,
) -> Result<ListeningServer, telpher_client::ListenError> {
    /// Reports when a handler is dropped before it has completed.
    struct Finish(&'static str, bool);

    impl Drop for Finish {
        fn drop(&mut self) {
            let how = if self.1 {
                "arrived"
            } else {
                "was stopped on the way"
            };
            println!("{} {how}", self.0);
        }
    }

    let server = Server::new().handle("run", move |_| async move {
        let mut finish = Finish(name, false);
        tokio::time::sleep(time).await;
        finish.1 = true;
        Ok(name)
    });
    server.listen("tcp://127.0.0.1:0").await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hare = runner("the hare", Duration::from_secs(9)).await?;
    let tortoise = runner("the tortoise", Duration::from_millis(50)).await?;
    let callers = [
        Caller::connect(hare.address()).await?,
        Caller::connect(tortoise.address()).await?,
    ];
    let (index, winner) = telpher_client::race(&callers, "run", "").await?;
    println!("number {index} wins: {winner:?}");
    // The slower handler is dropped because its call is cancelled.
    hare.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
