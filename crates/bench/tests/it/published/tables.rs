//! All tables that are made from results.

mod aims;
mod kafka;
mod messaging;
mod overview;
mod quotas;
mod slim;
mod storage;

pub(super) use overview::overview;

use super::table::Table;

/// Returns the tables of `docs/benchmarks.md`.
pub(super) fn of_benchmarks() -> Vec<Table> {
    vec![
        messaging::messages(),
        messaging::rpc(),
        storage::streams(),
        storage::store(),
        storage::store_one(),
        quotas::takes(),
        kafka::acks(),
        kafka::bulk(),
        kafka::end_to_end(),
        kafka::idle(),
        kafka::cluster(),
        kafka::faults(),
        slim::nodes(),
        slim::reliable(),
        slim::subscriptions(),
        slim::paced(),
        aims::aims(),
    ]
}
