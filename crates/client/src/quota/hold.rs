//! What was taken and is not settled.

use std::time::Duration;

use model::ErrorCode;
use wire::{Costs, Kind, Settle};

use super::{Quota, malformed, take};
use crate::CallError;

/// Something that is held, from a take that [holds](crate::quota::Take::hold).
///
/// It ends by itself when its time is over, and costs then what was reserved: dropping this does
/// nothing. To end it twice is as good as once.
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

    /// Its id, with which another process can settle it ([`Quota::hold`]). It is a secret: without
    /// tokens everyone who knows it may do so.
    pub fn id(&self) -> u128 {
        self.id
    }

    /// How long after the answer to its take it ends by itself, if the node says so.
    pub fn ends_after(&self) -> Option<Duration> {
        self.ends_after
    }

    /// Says what it truly cost; units that are not named cost what was reserved. More than that is
    /// never refused, and may become debt. False if it had ended before.
    pub async fn settle(&self, costs: &[(&str, u64)]) -> Result<bool, CallError> {
        let bytes = take::encode_costs(costs.iter().copied())?;
        self.end(Some(Costs::decode(&bytes).map_err(malformed)?))
            .await
    }

    /// Gives everything back. False if it had ended before.
    pub async fn cancel(&self) -> Result<bool, CallError> {
        self.end(None).await
    }

    async fn end(&self, costs: Option<Costs<'_>>) -> Result<bool, CallError> {
        if self.id == 0 {
            let message = "0 is the id of no hold";
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
