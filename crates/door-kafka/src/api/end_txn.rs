//! EndTxn: commits or aborts a transaction; answered when the decision is durable.

use kafka::end_txn::{Request, Response};
use topics::{Claim, Ending, ProducerId};

use crate::brokers::{Brokers, no_transactions};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::{before_fencing, code_of};
use crate::reply::{Answer, Tag};

/// From this version producers know PRODUCER_FENCED (KIP-588).
const FENCING_FROM: i16 = 2;

pub(crate) fn answer(client: &Client, tag: Tag, request: &Request) -> Answer {
    if Brokers::of(client).is_clustered() {
        return tag.now(Response {
            error_code: no_transactions().code,
            ..Response::default()
        });
    }
    let claim = Claim {
        name: &request.transactional_id,
        producer: ProducerId(request.producer_id),
        epoch: request.producer_epoch,
    };
    let ending = match request.committed {
        true => Ending::Commit,
        false => Ending::Abort,
    };
    let ending = client.topics().end_transaction(&claim, ending);
    let deadline = Deadline::usual();
    tag.later(async move {
        let code = code_of(&deadline.outcome(ending).await);
        Response {
            error_code: match tag.version {
                FENCING_FROM.. => code,
                _ => before_fencing(code),
            },
            ..Response::default()
        }
    })
}
