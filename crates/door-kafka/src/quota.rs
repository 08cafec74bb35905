//! Quotas of Kafka clients: produced bytes are charged, and halted clients are refused.
//!
//! A client over its limit is throttled as in Kafka (KIP-219): the request that exceeds the limit
//! is done and answered at once with `throttle_time_ms`, and nothing more is read from the
//! connection for that time. A limit that does not refill leads to an error instead.

use std::time::Duration;

use access::Principal;
use kafka::ErrorCode;
use platform::Durable;

use super::client::Client;
use super::errors::Failed;

/// The outcome of a charge.
#[derive(Debug, Default)]
pub(super) struct Charge {
    /// The time for which the client is throttled.
    pub(super) throttle: Duration,
    /// The record that has to be durable before the answer.
    pub(super) durable: Option<Durable>,
}

impl Charge {
    /// Returns `throttle_time_ms`, rounded up.
    pub(super) fn throttle_time_ms(&self) -> i32 {
        let ms = self.throttle.as_nanos().div_ceil(1_000_000);
        i32::try_from(ms).unwrap_or(i32::MAX)
    }
}

/// Checks whether a client is halted, also while one of its requests waits.
#[derive(Clone)]
pub(super) struct HaltCheck {
    node: node::Node,
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
    /// Returns a check for requests that wait.
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

    /// Returns for how long nothing is to be read from the client.
    pub(super) fn take_throttle(&mut self) -> Option<Duration> {
        let throttle = std::mem::take(&mut self.throttle);
        (!throttle.is_zero()).then_some(throttle)
    }
}
