//! Quotas of a client: bytes that it produces are charged, and a halted client is refused.
//!
//! A client over its limit is throttled as Kafka does it (KIP-219): the request that goes over the
//! limit is done and answered at once with `throttle_time_ms`, and nothing more is read from the
//! connection for that time. What does not come back by itself is refused instead.

use std::time::Duration;

use kafka::ErrorCode;
use node::access::Principal;
use node::quotas::Durable;

use super::client::Client;
use super::errors::Failed;

/// A request that was charged.
#[derive(Debug, Default)]
pub(super) struct Charge {
    /// How long the client is throttled.
    pub(super) throttle: Duration,
    /// What must be on disk before the answer.
    pub(super) durable: Option<Durable>,
}

impl Charge {
    /// `throttle_time_ms`; never early.
    pub(super) fn throttle_time_ms(&self) -> i32 {
        let ms = self.throttle.as_nanos().div_ceil(1_000_000);
        i32::try_from(ms).unwrap_or(i32::MAX)
    }
}

/// Looks up whether a client is halted, also while one of its requests waits.
#[derive(Clone)]
pub(super) struct HaltCheck {
    node: node::Handle,
    /// The principal that is charged and halted, if the client is admitted.
    principal: Option<Principal>,
}

impl HaltCheck {
    pub(super) fn is_halted(&self) -> bool {
        let principal = self.principal.as_ref();
        principal.is_some_and(|principal| self.node.quotas().halt_of(principal).is_some())
    }
}

impl Client {
    /// For requests that wait.
    pub(super) fn halt_check(&self) -> HaltCheck {
        let connection = self.connection();
        HaltCheck {
            node: self.node().clone(),
            principal: connection.map(|connection| connection.principal().clone()),
        }
    }

    /// Charges bytes that are to be appended.
    pub(super) fn charge(&mut self, bytes: u64) -> Result<Charge, Failed> {
        let Some(connection) = self.connection() else {
            return Ok(Charge::default());
        };
        let charged = connection.charge_bytes(bytes).map_err(|throttled| {
            let code = match throttled.code() {
                model::ErrorCode::Denied => ErrorCode::TopicAuthorizationFailed,
                model::ErrorCode::Unavailable | model::ErrorCode::Unconfirmed => {
                    ErrorCode::KafkaStorageError
                }
                _ => ErrorCode::PolicyViolation,
            };
            Failed::new(code, throttled.message())
        })?;
        self.throttle = self.throttle.max(charged.pause);
        Ok(Charge {
            throttle: charged.pause,
            durable: charged.durable,
        })
    }

    /// Refuses a client that is halted.
    pub(super) fn check_halt(&self) -> Result<(), Failed> {
        let halted = self.connection().and_then(|connection| connection.halted());
        match halted {
            None => Ok(()),
            Some(halt) => {
                let message = halt.to_string();
                Err(Failed::new(ErrorCode::TopicAuthorizationFailed, &message))
            }
        }
    }

    /// How long nothing is read from the client from now on.
    pub(super) fn take_throttle(&mut self) -> Option<Duration> {
        let throttle = std::mem::take(&mut self.throttle);
        (!throttle.is_zero()).then_some(throttle)
    }
}
