//! ListTransactions: lists transactions, or those that match the filters.

use kafka::list_transactions::{Request, Response, Transaction as Shown};
use topics::{State as TransactionState, Transaction};

use crate::brokers::{Brokers, no_transactions};
use crate::client::Client;

/// All states, for the filter.
const STATES: [TransactionState; 6] = [
    TransactionState::Empty,
    TransactionState::Ongoing,
    TransactionState::PrepareCommit,
    TransactionState::PrepareAbort,
    TransactionState::CompleteCommit,
    TransactionState::CompleteAbort,
];

pub(crate) fn answer(client: &Client, request: &Request) -> Response {
    if Brokers::of(client).is_clustered() {
        return Response {
            error_code: no_transactions().code,
            ..Response::default()
        };
    }
    let now_ms = client.node().ports().clock.unix_ms();
    let now_ms = i64::try_from(now_ms).unwrap_or(i64::MAX);
    let is_state = |name: &String| STATES.iter().any(|state| state.as_str() == name);
    let transactions = client.topics().transactions().into_iter();
    let wanted = transactions.filter(|it| is_wanted(it, request, now_ms));
    let unknown = request.state_filters.iter().filter(|name| !is_state(name));
    Response {
        unknown_state_filters: unknown.cloned().collect(),
        transaction_states: wanted.map(shown).collect(),
        ..Response::default()
    }
}

fn is_wanted(it: &Transaction, request: &Request, now_ms: i64) -> bool {
    let states = &request.state_filters;
    let producers = &request.producer_id_filters;
    let is_state = states.is_empty() || states.iter().any(|name| name == it.state.as_str());
    let is_producer = producers.is_empty() || producers.contains(&it.producer.0);
    let is_long = request.duration_filter < 0
        || (it.started_ms >= 0 && now_ms - it.started_ms > request.duration_filter);
    is_state && is_producer && is_long
}

fn shown(transaction: Transaction) -> Shown {
    Shown {
        transactional_id: transaction.name,
        producer_id: transaction.producer.0,
        transaction_state: transaction.state.as_str().to_owned(),
    }
}
