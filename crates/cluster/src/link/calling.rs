//! Calling a peer.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use journal::ShardId;
use tokio::time::timeout;

use super::Channel;
use super::call::{ANSWERED, CALL_SIZE_MAX, CallError, REFUSED};
use super::frame::Operation;
use super::peers::Peers;

impl Peers {
    /// Calls a member at its address.
    pub(crate) async fn call(
        self: &Arc<Self>,
        to: u64,
        address: &str,
        request: Bytes,
        limit: Duration,
    ) -> Result<Bytes, CallError> {
        if request.len() > CALL_SIZE_MAX {
            return Err(CallError::NotSent);
        }
        let link = self.link(to, address, Channel::Bulk);
        let mut is_sent = false;
        let called = async {
            let connection = link.connection().await;
            let caller = connection.call().map_err(|_| CallError::NotSent)?;
            is_sent = true;
            caller.send(Operation::Call, ShardId(0), 0, |out| {
                out.extend_from_slice(&request);
            });
            let answer = std::future::poll_fn(|cx| caller.answers.poll(cx)).await;
            let (_, mut answer) = answer.ok_or(CallError::Unknown)?;
            match answer.try_get_u8() {
                Ok(ANSWERED) => Ok(answer),
                Ok(REFUSED) => Err(CallError::NotSent),
                _ => Err(CallError::Unknown),
            }
        };
        match timeout(limit, called).await {
            Ok(outcome) => outcome,
            Err(_) if is_sent => Err(CallError::Unknown),
            Err(_) => Err(CallError::NotSent),
        }
    }
}
