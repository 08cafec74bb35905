//! `Write`: stores a message in the mailbox of a name, until a subscriber acknowledges it.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use model::Name;
use tokio::time::Instant;
use wire::{Cast, Key, Stored};

use crate::agents::one_way::{OneWay, Verb};
use crate::calls::options::{CallOptions, option_methods};
use crate::state::clock::Timeout;
use crate::state::routes::Target;
use crate::{CallError, Client, RetryPolicy};

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteReceipt {
    /// Offset in the mailbox.
    pub offset: u64,
    /// True if the message was stored already by an earlier attempt.
    pub is_duplicate: bool,
}

/// A write in progress; awaiting it waits until the message is on disk. From [`Client::write`].
///
/// Each write has an id by which the node recognises a retry. A write with the id of one of the
/// last 1,024 writes to the name is not delivered twice.
#[must_use = "a write does nothing unless it is awaited"]
pub struct Write<'a> {
    client: &'a Client,
    name: &'a Name,
    method: &'a str,
    /// Body of the message, after space for the key.
    body: Vec<u8>,
    key: Key,
    options: CallOptions,
}

impl Client {
    /// Stores a message on disk for one of the subscribers of the name. The message stays in the
    /// mailbox of the name until a subscriber acknowledges it with a reply.
    /// [`Client::write_to_memory`] is faster and does not store the message.
    pub fn write<'a>(&'a self, name: &'a Name, body: impl AsRef<[u8]>) -> Write<'a> {
        let body = body.as_ref();
        let mut behind_key = Vec::with_capacity(Key::SIZE + body.len());
        behind_key.resize(Key::SIZE, 0);
        behind_key.extend_from_slice(body);
        Write {
            client: self,
            name,
            method: "",
            body: behind_key,
            key: Key {
                id: fastrand::u128(..).to_le_bytes(),
                ttl_ms: 0,
            },
            options: CallOptions::new(self.core()),
        }
    }
}

impl<'a> Write<'a> {
    /// Sets the id. Retries must use the same id, also from another process.
    pub fn id(mut self, id: [u8; 16]) -> Self {
        self.key.id = id;
        self
    }

    /// Sets how long the message may wait for an acknowledgement: 1 ms to 49 days; the node may
    /// allow less.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        let ttl_ms = ttl.as_millis().clamp(1, u128::from(u32::MAX));
        self.key.ttl_ms = ttl_ms as u32;
        self
    }

    /// Sets the method. A message to an agent has no method by default.
    pub fn method(mut self, method: &'a str) -> Self {
        self.method = method;
        self
    }

    option_methods! {
        options:
        /// Sends metadata entries with the body.
        metadata;
        /// Sets how long the write may take, including all retries; `None` for no limit.
        deadline;
    }

    /// Retries a failed write, also after `unconfirmed`: the id makes that safe.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.options.retry = Some(policy.idempotent());
        self
    }

    async fn run(mut self) -> Result<WriteReceipt, CallError> {
        self.body[..Key::SIZE].copy_from_slice(&self.key.encode());
        let deadline = self.options.timeout.deadline(Instant::now());
        let mut made = 0;
        loop {
            let timeout = Timeout::until(deadline, Instant::now());
            let error = match self.attempt(timeout).await {
                Ok(written) => return Ok(written),
                Err(error) => error,
            };
            made += 1;
            let pause = self
                .options
                .retry
                .and_then(|policy| policy.pause(&error, made));
            let Some(until) = pause.map(|pause| Instant::now() + pause) else {
                return Err(error);
            };
            if deadline.is_some_and(|deadline| until >= deadline) {
                return Err(error);
            }
            tokio::time::sleep_until(until).await;
        }
    }

    async fn attempt(&self, timeout: Timeout) -> Result<WriteReceipt, CallError> {
        let target = Target {
            name: self.name.as_str(),
            method: self.method,
            cast: Cast::Any,
        };
        let write = OneWay::new(self.client.core(), target, &self.body[..])
            .metadata(self.options.metadata.clone())
            .deadline(timeout.as_duration());
        let payload = write.answered(Verb::Write).await?;
        let stored = Stored::decode(&payload).map_err(|error| CallError::malformed(&error))?;
        Ok(WriteReceipt {
            offset: stored.offset,
            is_duplicate: stored.is_duplicate,
        })
    }
}

impl<'a> IntoFuture for Write<'a> {
    type Output = Result<WriteReceipt, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl std::fmt::Debug for Write<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Write({} {})", self.name, self.method)
    }
}
