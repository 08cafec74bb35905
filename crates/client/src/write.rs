//! Writing: a message that the node acknowledges.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use model::Name;
use tokio::time::Instant;
use wire::{Cast, Key, Stored};

use crate::clock::Timeout;
use crate::messaging::protocol;
use crate::one_way::{OneWay, Verb};
use crate::routes::Target;
use crate::{CallError, Client, Metadata, RetryPolicy};

/// Where a write is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its place in the mailbox.
    pub offset: u64,
    /// It was there already: this was a retry.
    pub is_duplicate: bool,
}

/// A write that is being made; awaiting it waits until it is on disk. From [`Client::write`].
///
/// Each has an id of its own, by which the node recognises a retry: repeating the same write does
/// not deliver it twice, as long as fewer than 1,024 others were written to the name since.
#[must_use = "a write does nothing unless it is awaited"]
pub struct Write<'a> {
    client: &'a Client,
    name: &'a Name,
    method: &'a str,
    /// Behind room for the key.
    body: Vec<u8>,
    metadata: Metadata,
    key: Key,
    timeout: Timeout,
    retry: Option<RetryPolicy>,
}

impl Client {
    /// Writes a message for one of the subscribers of the name, which is not lost: it waits on
    /// disk, in the mailbox of the name, until a subscriber acknowledges it by its answer.
    /// [`Client::write_to_memory`] promises less.
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
            metadata: Metadata::new(),
            key: Key {
                id: fastrand::u128(..).to_le_bytes(),
                ttl_ms: 0,
            },
            timeout: self.core().options.deadline,
            retry: None,
        }
    }
}

impl<'a> Write<'a> {
    /// What the write is called: the same for each retry of it, also by another process.
    pub fn id(mut self, id: [u8; 16]) -> Self {
        self.key.id = id;
        self
    }

    /// How long it may wait for a subscriber that acknowledges it, in milliseconds and at most 49
    /// days; the node may allow less.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        let ttl_ms = ttl.as_millis().clamp(1, u128::from(u32::MAX));
        self.key.ttl_ms = ttl_ms as u32;
        self
    }

    /// Names a method of the agent; a message to an agent is for none unless it says so.
    pub fn method(mut self, method: &'a str) -> Self {
        self.method = method;
        self
    }

    /// Sends entries along with the body.
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = metadata;
        self
    }

    /// How long it may take until it is acknowledged, all attempts together; `None` for ever.
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.timeout = Timeout::new(deadline.into());
        self
    }

    /// Tries again after a failure: also after one that leaves open whether it is on disk, for
    /// twice is as good as once.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy.idempotent());
        self
    }

    async fn run(mut self) -> Result<Written, CallError> {
        self.body[..Key::SIZE].copy_from_slice(&self.key.encode());
        let deadline = self.timeout.deadline(Instant::now());
        let mut made = 0;
        loop {
            let timeout = Timeout::until(deadline, Instant::now());
            let error = match self.attempt(timeout).await {
                Ok(written) => return Ok(written),
                Err(error) => error,
            };
            made += 1;
            let pause = self.retry.and_then(|policy| policy.pause(&error, made));
            let Some(until) = pause.map(|pause| Instant::now() + pause) else {
                return Err(error);
            };
            if deadline.is_some_and(|deadline| until >= deadline) {
                return Err(error);
            }
            tokio::time::sleep_until(until).await;
        }
    }

    async fn attempt(&self, timeout: Timeout) -> Result<Written, CallError> {
        let target = Target {
            name: self.name.as_str(),
            method: self.method,
            cast: Cast::Any,
        };
        let write = OneWay::new(self.client.core(), target, &self.body[..])
            .metadata(self.metadata.clone())
            .deadline(timeout.as_duration());
        let payload = write.answered(Verb::Write).await?;
        let stored = Stored::decode(&payload).map_err(|error| protocol(&error))?;
        Ok(Written {
            offset: stored.offset,
            is_duplicate: stored.is_duplicate,
        })
    }
}

impl<'a> IntoFuture for Write<'a> {
    type Output = Result<Written, CallError>;
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
