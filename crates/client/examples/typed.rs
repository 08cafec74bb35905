//! Typed calls, with MessagePack or JSON.
//!
//! `cargo run -p telpher-client --example typed`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use serde::{Deserialize, Serialize};
use telpher_client::{Caller, Fault, Json, MessagePack, Server};

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    item: String,
    count: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    total_cents: u64,
}

async fn sell(order: Order) -> Result<Receipt, Fault> {
    match order.item.as_str() {
        "apple" => Ok(Receipt {
            total_cents: 40 * u64::from(order.count),
        }),
        other => Err(Fault::new(format!("there are no {other}s today"))),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new()
        .handle_typed(MessagePack, "sell", |_, order| sell(order))
        .handle_typed(Json, "sell.json", |_, order| sell(order));
    let listening = server.listen("tcp://127.0.0.1:0").await?;
    let caller = Caller::connect(listening.address()).await?;

    let order = |item: &str, count| Order {
        item: item.to_owned(),
        count,
    };
    let receipt: Receipt = caller.call_typed("sell", &order("apple", 3)).await?;
    println!("three apples: {receipt:?}");
    let refused = caller
        .call_typed::<_, Receipt>("sell", &order("mango", 1))
        .await;
    if let Err(error) = refused {
        println!("a mango: {error}");
    }

    let reading_along = caller
        .call("sell.json", r#"{"item":"apple","count":2}"#)
        .await?;
    println!("two apples by hand: {reading_along:?}");
    let receipt: Receipt = caller
        .typed(Json)
        .call("sell.json", &order("apple", 5))
        .await?;
    println!("five apples: {receipt:?}");
    Ok(())
}
