//! `Hold`: quota that was taken and is not settled yet.

use std::time::Duration;

use model::ErrorCode;
use wire::{Costs, Kind, Settle};

use super::take::malformed;
use super::{Quota, take};
use crate::CallError;

/// A reservation made by a take with [`Take::hold`](crate::quota::Take::hold).
///
/// A hold ends by itself when its time is over, and then costs what was reserved. Dropping this
/// object does not end it. Ending a hold twice has no further effect.
#[derive(Clone, Debug)]
pub struct Hold {
    quota: Quota,
    id: u128,
    ends_after: Option<Duration>,
}

impl Hold {
    pub(super) fn new(quota: Quota, id: u128, ends_after: Option<Duration>) -> Self {
        Self {
            quota,
            id,
            ends_after,
        }
    }

    /// Returns the id, with which another process can settle the hold ([`Quota::hold`]). The id is
    /// a secret: on a node without tokens, any client that knows it can settle the hold.
    pub fn id(&self) -> u128 {
        self.id
    }

    /// Returns the time from the take's answer until the hold ends by itself, if the node sent one.
    pub fn ends_after(&self) -> Option<Duration> {
        self.ends_after
    }

    /// Settles the hold with the actual costs. Units not in `costs` cost what was reserved. A
    /// higher cost than reserved is always accepted and may leave a negative balance. Returns false
    /// if the hold had ended before.
    pub async fn settle(&self, costs: &[(&str, u64)]) -> Result<bool, CallError> {
        let bytes = take::encode_costs(costs.iter().copied())?;
        self.end(Some(Costs::decode(&bytes).map_err(malformed)?))
            .await
    }

    /// Cancels the hold and returns everything. Returns false if the hold had ended before.
    pub async fn cancel(&self) -> Result<bool, CallError> {
        self.end(None).await
    }

    async fn end(&self, costs: Option<Costs<'_>>) -> Result<bool, CallError> {
        if self.id == 0 {
            let message = "0 is not a valid hold id";
            return Err(CallError::new(ErrorCode::InvalidArgument, message));
        }
        let mut frame = Vec::new();
        let settle = Settle {
            hold: self.id,
            costs,
        };
        settle.encode(wire::Correlation::NONE, &mut frame);
        let body = &frame[wire::HEADER_SIZE..];
        let deadline = self.quota.deadline;
        let payload = self.quota.ask(Kind::SETTLE, body, deadline, true).await?;
        wire::decode_settled(&payload).map_err(malformed)
    }
}
