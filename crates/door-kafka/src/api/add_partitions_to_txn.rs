//! AddPartitionsToTxn: adds partitions to a transaction, either all or none.
//!
//! From version 4 brokers ask each other about many transactions at once, and may only verify that
//! a partition was added.

use std::sync::Arc;

use kafka::ErrorCode;
use kafka::add_partitions_to_txn::{
    PartitionResponse, Request, Response, Topic, TopicResponse, Transaction, TransactionResponse,
};
use platform::Pending;
use topic_service::{Topic as Known, TopicRef, Topics, TransactionError};
use topics::{Claim, ProducerId};

use super::partition_in;
use crate::brokers::{Brokers, no_transactions};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::{Coded, before_fencing};
use crate::reply::{Answer, Tag};

/// From this version a request contains many transactions (KIP-890).
const BATCHED_FROM: i16 = 4;
/// From this version producers know PRODUCER_FENCED (KIP-588).
const FENCING_FROM: i16 = 2;

/// The outcome for a transaction's partitions.
enum Adding {
    /// All wait for one result.
    Together(Pending<(), TransactionError>),
    /// Each has its own result.
    Each(Vec<ErrorCode>),
}

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let is_batched = tag.version >= BATCHED_FROM;
    let transactions = match is_batched {
        true => request.transactions,
        false => vec![Transaction {
            transactional_id: request.v3_and_below_transactional_id,
            producer_id: request.v3_and_below_producer_id,
            producer_epoch: request.v3_and_below_producer_epoch,
            verify_only: false,
            topics: request.v3_and_below_topics,
        }],
    };
    let topics = client.topics();
    let is_clustered = Brokers::of(client).is_clustered();
    let adding: Vec<_> = transactions
        .into_iter()
        .map(|transaction| match is_clustered {
            true => (refuse(&transaction), transaction),
            false => (add(topics, &transaction), transaction),
        })
        .collect();
    let deadline = Deadline::usual();
    tag.later(async move {
        let mut results = Vec::with_capacity(adding.len());
        for (adding, transaction) in adding {
            let codes = adding.codes(&transaction, tag.version, deadline).await;
            results.push(TransactionResponse {
                transactional_id: transaction.transactional_id,
                topic_results: shown(transaction.topics, codes),
            });
        }
        match is_batched {
            true => Response {
                results_by_transaction: results,
                ..Response::default()
            },
            false => Response {
                results_by_topic_v3_and_below: results
                    .pop()
                    .map_or_else(Vec::new, |result| result.topic_results),
                ..Response::default()
            },
        }
    })
}

/// Returns an error for each partition: a cluster has no transactions.
fn refuse(transaction: &Transaction) -> Adding {
    let topics = transaction.topics.iter();
    let count = topics.map(|topic| topic.partitions.len()).sum();
    Adding::Each(vec![no_transactions().code; count])
}

fn add(topics: &Topics, transaction: &Transaction) -> Adding {
    let claim = Claim {
        name: &transaction.transactional_id,
        producer: ProducerId(transaction.producer_id),
        epoch: transaction.producer_epoch,
    };
    let asked: Vec<_> = transaction
        .topics
        .iter()
        .flat_map(|topic| {
            let known = topics.find(TopicRef::Name(&topic.name));
            let partitions = topic.partitions.iter();
            partitions.map(move |index| look_up(known.as_ref(), *index))
        })
        .collect();
    if transaction.verify_only {
        let verified = asked.into_iter().map(|asked| {
            let (topic, index) = asked?;
            let verified = topics.verify_partition(&claim, &topic, index);
            verified.map_err(|error| error.code())
        });
        let codes = verified.map(|it| it.err().unwrap_or_default());
        return Adding::Each(codes.collect());
    }
    if asked.iter().any(Result::is_err) {
        let codes = asked.into_iter();
        let codes = codes.map(|it| it.err().unwrap_or(ErrorCode::OperationNotAttempted));
        return Adding::Each(codes.collect());
    }
    let partitions: Vec<_> = asked.into_iter().flatten().collect();
    Adding::Together(topics.add_partitions(&claim, &partitions))
}

fn look_up(topic: Option<&Arc<Known>>, index: i32) -> Result<(Arc<Known>, u32), ErrorCode> {
    let topic = topic.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    Ok((topic.clone(), partition_in(topic, index)?))
}

impl Adding {
    /// Returns a code for each partition.
    async fn codes(
        self,
        transaction: &Transaction,
        version: i16,
        deadline: Deadline,
    ) -> Vec<ErrorCode> {
        match self {
            Self::Each(codes) => codes,
            Self::Together(adding) => {
                let told = deadline.outcome(adding).await;
                let code = told.err().map(|failed| failed.code);
                let code = match version {
                    FENCING_FROM.. => code,
                    _ => code.map(before_fencing),
                };
                let topics = transaction.topics.iter();
                let count = topics.map(|topic| topic.partitions.len()).sum();
                vec![code.unwrap_or_default(); count]
            }
        }
    }
}

fn shown(topics: Vec<Topic>, codes: Vec<ErrorCode>) -> Vec<TopicResponse> {
    let mut codes = codes.into_iter();
    let topics = topics.into_iter().map(|topic| TopicResponse {
        name: topic.name,
        results_by_partition: topic
            .partitions
            .into_iter()
            .map(|partition_index| PartitionResponse {
                partition_index,
                partition_error_code: codes.next().unwrap_or(ErrorCode::UnknownServerError),
            })
            .collect(),
    });
    topics.collect()
}
