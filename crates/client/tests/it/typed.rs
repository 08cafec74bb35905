//! Typed calls, and services as traits.

use std::collections::BTreeMap;
use std::time::Duration;

use client::{
    Caller, Context, ErrorCode, Fault, Json, MessagePack, RetryPolicy, Sent, Server, service,
};
use serde::{Deserialize, Serialize};

use crate::support::{Probe, bounded, over_every_transport};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    item: String,
    count: u32,
    notes: Vec<Note>,
    prices: BTreeMap<String, f64>,
    gift: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Note {
    Fragile,
    Until { day: u8 },
    Text(String),
}

fn order() -> Order {
    Order {
        item: "lamp — größer".to_owned(),
        count: 3,
        notes: vec![
            Note::Fragile,
            Note::Until { day: 7 },
            Note::Text("ring twice".to_owned()),
        ],
        prices: BTreeMap::from([("eur".to_owned(), 12.5)]),
        gift: None,
    }
}

fn order_server() -> Server {
    let double = |_: Context, order: Order| async move {
        match order.count {
            0 => Err(Fault::with_code(ErrorCode::Denied, "nothing to double")),
            count => Ok(Order {
                count: 2 * count,
                ..order
            }),
        }
    };
    Server::new()
        .handle_typed(MessagePack, "double", double)
        .handle_typed(Json, "double in json", double)
        .handle_typed(Json, "no text", |_, ()| async {
            Ok(BTreeMap::from([((1, 2), 3)]))
        })
}

#[tokio::test]
async fn values_travel_as_messagepack_and_as_json() {
    bounded(over_every_transport(
        &order_server(),
        async |caller: Caller| {
            let doubled: Order = caller.call_typed("double", &order()).await.unwrap();
            assert_eq!((doubled.count, &doubled.notes), (6, &order().notes));
            let raw = caller
                .call("double in json", serde_json::to_vec(&order()).unwrap())
                .await;
            let doubled: Order = serde_json::from_slice(&raw.unwrap()).unwrap();
            assert_eq!(
                doubled,
                Order {
                    count: 6,
                    ..order()
                }
            );
            let json = caller.clone().typed(Json);
            let doubled: Order = json.call("double in json", &order()).await.unwrap();
            assert_eq!(doubled.count, 6);
            let packed = caller.typed(MessagePack);
            let doubled: Order = packed.call("double", &doubled).await.unwrap();
            assert_eq!(doubled.count, 12);
        },
    ))
    .await;
}

#[tokio::test]
async fn undecodable_values_are_errors_on_both_sides() {
    bounded(over_every_transport(
        &order_server(),
        async |caller: Caller| {
            let error = caller
                .call_typed::<_, Order>("double", "no order")
                .await
                .unwrap_err();
            assert_eq!(
                (error.code, error.sent),
                (ErrorCode::InvalidArgument, Sent::Yes)
            );
            assert!(error.message.contains("MessagePack"), "{error}");
            let error = caller.call("double in json", "{").await.unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert!(error.message.contains("JSON"), "{error}");

            let error = caller
                .call_typed::<_, String>("double", &order())
                .await
                .unwrap_err();
            assert_eq!((error.code, error.sent), (ErrorCode::Protocol, Sent::Yes));
            assert!(error.message.contains("the reply of `double`"), "{error}");

            let json = caller.typed(Json);
            let keys = BTreeMap::from([((1, 2), 3)]);
            let error = json
                .call::<_, Order>("double in json", &keys)
                .await
                .unwrap_err();
            assert_eq!(
                (error.code, error.sent),
                (ErrorCode::InvalidArgument, Sent::No)
            );
            let error = json.call::<_, u8>("no text", &()).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Internal);
            let empty = Order {
                count: 0,
                ..order()
            };
            let error = json
                .call::<_, Order>("double in json", &empty)
                .await
                .unwrap_err();
            assert_eq!(
                (error.code, error.message.as_str()),
                (ErrorCode::Denied, "nothing to double")
            );
            assert_eq!(json.caller().client().in_flight(), 0);
        },
    ))
    .await;
}

service! {
    /// Counts and adds.
    pub(crate) trait Ledger, client LedgerClient {
        /// Adds to an account and returns its balance.
        async fn deposit(account: String, amount: i64) -> i64;
        /// A method without arguments and without a reply.
        async fn close();
        /// Returns the remaining time of the caller in milliseconds.
        async fn remaining() -> u64;
        /// Fails for this many calls.
        async fn flaky(failures: usize) -> usize;
    }
}

#[derive(Default)]
struct Book {
    balance: parking_lot::Mutex<BTreeMap<String, i64>>,
    calls: Probe,
    closed: Probe,
}

impl Ledger for Book {
    async fn deposit(&self, _: Context, account: String, amount: i64) -> Result<i64, Fault> {
        tokio::task::yield_now().await;
        if amount < 0 {
            return Err(Fault::with_code(
                ErrorCode::Denied,
                format!("{account} is not a loan"),
            ));
        }
        let mut balance = self.balance.lock();
        let balance = balance.entry(account).or_default();
        *balance += amount;
        Ok(*balance)
    }

    async fn close(&self, context: Context) -> Result<(), Fault> {
        assert_eq!(context.method(), "Ledger.close");
        self.closed.add(1);
        Ok(())
    }

    async fn remaining(&self, context: Context) -> Result<u64, Fault> {
        let remaining = context
            .deadline_remaining()
            .ok_or_else(|| Fault::new("for ever"))?;
        Ok(remaining.as_millis() as u64)
    }

    async fn flaky(&self, _: Context, failures: usize) -> Result<usize, Fault> {
        self.calls.add(1);
        match self.calls.count() % (failures + 1) {
            0 => Ok(self.calls.count()),
            _ => Err(Fault::with_code(ErrorCode::Busy, "not now")),
        }
    }
}

#[tokio::test]
async fn a_service_is_a_trait_to_implement_and_a_client_to_call() {
    let book = Book::default();
    let closed = book.closed.clone();
    bounded(over_every_transport(
        &book.register(Server::new()),
        async |caller: Caller| {
            let account = format!("of {caller:?}-{}", closed.count());
            let ledger = LedgerClient::new(caller);
            assert_eq!(ledger.deposit(account.clone(), 5).await.unwrap(), 5);
            assert_eq!(ledger.deposit(account.clone(), 6).await.unwrap(), 11);
            let error = ledger.deposit(account, -1).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Denied);
            let before = closed.count();
            ledger.close().await.unwrap();
            assert_eq!(closed.count(), before + 1);
            let time = Duration::from_secs(3);
            assert!(ledger.remaining().deadline(time).await.unwrap() <= 3000);
            let error = ledger.remaining().deadline(None).await.unwrap_err();
            assert_eq!(error.message, "for ever");
            let pause = Duration::from_millis(1);
            let policy = RetryPolicy::attempts(5).pauses(pause, pause);
            ledger.flaky(2).retry(policy).await.unwrap();
        },
    ))
    .await;
}
