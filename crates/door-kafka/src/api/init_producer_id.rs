//! InitProducerId: returns a producer id; with a transactional id, it fences the previous producer.

use kafka::ErrorCode;
use kafka::init_producer_id::{Request, Response};
use topic_service::InitProducer;
use topics::{Expected, ProducerId};

use crate::brokers::{Brokers, no_transactions};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::before_fencing;
use crate::reply::{Answer, Tag};

/// From this version producers know PRODUCER_FENCED (KIP-588).
const FENCING_FROM: i16 = 4;

pub(crate) fn answer(client: &Client, tag: Tag, request: &Request) -> Answer {
    if request.transactional_id.is_some() && Brokers::of(client).is_clustered() {
        return tag.now(refused(no_transactions().code));
    }
    let expected = match (request.producer_id, request.producer_epoch) {
        (id @ 0.., epoch @ 0..) => Some(Expected {
            producer: ProducerId(id),
            epoch,
        }),
        (-1, -1) => None,
        _ => return tag.now(refused(ErrorCode::InvalidRequest)),
    };
    let initializing = client.topics().init_producer(&InitProducer {
        name: request.transactional_id.as_deref(),
        timeout_ms: request.transaction_timeout_ms,
        expected,
    });
    let deadline = Deadline::usual();
    tag.later(async move {
        match deadline.outcome(initializing).await {
            Ok(producer) => Response {
                producer_id: producer.producer.0,
                producer_epoch: producer.epoch,
                ..Response::default()
            },
            Err(failed) if tag.version < FENCING_FROM => refused(before_fencing(failed.code)),
            Err(failed) => refused(failed.code),
        }
    })
}

fn refused(error_code: ErrorCode) -> Response {
    Response {
        error_code,
        producer_epoch: -1,
        ..Response::default()
    }
}
