//! A service as a Rust trait: one declaration for both sides.
//!
//! `cargo run -p telpher-client --example service`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use telpher_client::{Caller, Context, Fault, Server, service};

service! {
    /// Adds and divides.
    pub trait Calculator, client CalculatorClient {
        /// Sum of `a` and `b`.
        async fn add(a: i64, b: i64) -> i64;
        /// Quotient of `a` and `b`.
        async fn divide(a: i64, b: i64) -> i64;
        /// Sum of all values.
        async fn sum(numbers: Vec<i64>) -> i64;
    }
}

struct Abacus;

impl Calculator for Abacus {
    async fn add(&self, _: Context, a: i64, b: i64) -> Result<i64, Fault> {
        Ok(a + b)
    }

    async fn divide(&self, _: Context, a: i64, b: i64) -> Result<i64, Fault> {
        a.checked_div(b)
            .ok_or_else(|| Fault::new("division by zero"))
    }

    async fn sum(&self, context: Context, numbers: Vec<i64>) -> Result<i64, Fault> {
        println!(
            "{} has {:?}",
            context.method(),
            context.deadline_remaining()
        );
        Ok(numbers.iter().sum())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Abacus.register(Server::new());
    let listening = server.listen("tcp://127.0.0.1:0").await?;

    let calculator = CalculatorClient::new(Caller::connect(listening.address()).await?);
    println!("2 + 3 = {}", calculator.add(2, 3).await?);
    println!("7 / 2 = {}", calculator.divide(7, 2).await?);
    let sum = calculator
        .sum(vec![1, 2, 3, 4])
        .deadline(Duration::from_secs(2))
        .await?;
    println!("1 + 2 + 3 + 4 = {sum}");
    if let Err(error) = calculator.divide(1, 0).await {
        println!("1 / 0: {error}");
    }
    Ok(())
}
