//! AddOffsetsToTxn: adds a group's offsets to a transaction.

use kafka::ErrorCode;
use kafka::add_offsets_to_txn::{Request, Response};
use topics::{Claim, ProducerId};

use crate::brokers::{Brokers, no_transactions};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::{before_fencing, code_of};
use crate::reply::{Answer, Tag};

/// From this version producers know PRODUCER_FENCED (KIP-588).
const FENCING_FROM: i16 = 2;

pub(crate) fn answer(client: &Client, tag: Tag, request: &Request) -> Answer {
    if Brokers::of(client).is_clustered() {
        return tag.now(response(no_transactions().code));
    }
    if request.group_id.is_empty() {
        return tag.now(response(ErrorCode::InvalidGroupId));
    }
    let claim = Claim {
        name: &request.transactional_id,
        producer: ProducerId(request.producer_id),
        epoch: request.producer_epoch,
    };
    let adding = client.topics().add_group(&claim, &request.group_id);
    let deadline = Deadline::usual();
    tag.later(async move {
        let code = code_of(&deadline.outcome(adding).await);
        match tag.version {
            FENCING_FROM.. => response(code),
            _ => response(before_fencing(code)),
        }
    })
}

fn response(error_code: ErrorCode) -> Response {
    Response {
        error_code,
        ..Response::default()
    }
}
