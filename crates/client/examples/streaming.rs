//! A streamed reply that the reader paces.
//!
//! `cargo run -p telpher-client --example streaming`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use telpher_client::{Caller, ItemSender, Request, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new()
        .handle_stream("words", |request: Request, items: ItemSender| async move {
            for word in std::str::from_utf8(&request.body)?.split_whitespace() {
                items.send(word.to_owned()).await?;
            }
            Ok(())
        })
        .handle_stream("forever", |_, items: ItemSender| async move {
            for number in 0_u64.. {
                // Waits while the reader is 64 items behind; fails when the reader is gone.
                items.send(number.to_string()).await?;
            }
            Ok(())
        });
    let listening = server.listen("tcp://127.0.0.1:0").await?;
    let caller = Caller::connect(listening.address()).await?;

    let mut words = caller.stream("words", "an answer comes word by word");
    while let Some(word) = words.next().await {
        println!("{:?}", word?);
    }

    let mut numbers = caller.stream("forever", "");
    let mut count = 0;
    while let Some(number) = numbers.next().await {
        number?;
        count += 1;
        if count == 1000 {
            break;
        }
    }
    // The handler is dropped because the stream is dropped.
    drop(numbers);
    println!("took {count} numbers of a stream without end");
    Ok(())
}
