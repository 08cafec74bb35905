//! DescribeTransactions: describes transactions and their partitions.

use std::collections::BTreeMap;

use kafka::ErrorCode;
use kafka::describe_transactions::{Request, Response, Topic, Transaction as Shown};
use topic_service::{TopicRef, Topics};
use topics::{Participant, Transaction};

use crate::brokers::{Brokers, no_transactions};
use crate::client::Client;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    let topics = client.topics();
    let names = request.transactional_ids.into_iter();
    let is_clustered = Brokers::of(client).is_clustered();
    let described = names.map(|name| match topics.transaction(&name) {
        _ if is_clustered => Shown {
            error_code: no_transactions().code,
            transactional_id: name,
            ..Shown::default()
        },
        Some(transaction) => shown(topics, transaction),
        None => Shown {
            error_code: match name.is_empty() {
                true => ErrorCode::InvalidRequest,
                false => ErrorCode::TransactionalIdNotFound,
            },
            transactional_id: name,
            ..Shown::default()
        },
    });
    Response {
        transaction_states: described.collect(),
        ..Response::default()
    }
}

fn shown(topics: &Topics, transaction: Transaction) -> Shown {
    // Groups are left out: Kafka shows them as partitions of a topic that does not exist here.
    let mut partitions: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for participant in &transaction.participants {
        let Participant::Partition { topic, index } = participant else {
            continue;
        };
        if let Some(topic) = topics.find(TopicRef::Id(*topic)) {
            let indexes = partitions.entry(topic.about().name.clone()).or_default();
            indexes.push(*index as i32);
        }
    }
    let topics = partitions.into_iter();
    Shown {
        transactional_id: transaction.name,
        transaction_state: transaction.state.as_str().to_owned(),
        transaction_timeout_ms: transaction.timeout_ms,
        transaction_start_time_ms: transaction.started_ms,
        producer_id: transaction.producer.0,
        producer_epoch: transaction.epoch,
        topics: topics
            .map(|(topic, partitions)| Topic { topic, partitions })
            .collect(),
        ..Shown::default()
    }
}
