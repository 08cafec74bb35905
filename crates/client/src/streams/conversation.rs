//! `Conversation`: appends messages to, reads and follows a conversation stored at a node.

use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, Name, NameError};
use wire::{AppendedMessages, Cast};

use crate::state::clock::Timeout;
use crate::streams::follow::Follow;
use crate::streams::handle::{StreamHandle, number_of_conflict};
use crate::streams::page::{ReadLimit, Record};
use crate::{CallError, Client};

/// A conversation that a node stores, from [`Client::conversation`]. Cheap to clone.
///
/// An acknowledged message is on disk. Sequence numbers are dense from 1 and never reused.
#[derive(Clone, Debug)]
pub struct Conversation {
    name: Name,
    handle: StreamHandle,
}

/// A message to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Message id. A retry with the same id does not append the message twice. If empty, the node
    /// makes an id, and a retry appends the message again.
    pub id: String,
    /// Role of the author: `user`, `assistant`, `system`, `tool`, …
    pub role: String,
    /// Name of the author; may be empty.
    pub from: String,
    /// Number of model tokens, if known.
    pub tokens: Option<u32>,
    /// Parts of the message, as a JSON array.
    pub parts: String,
    /// Metadata as a JSON object, or empty.
    pub metadata: String,
}

/// Result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendedBatch {
    /// Smallest sequence number of the batch.
    pub first: u64,
    /// Largest sequence number of the batch.
    pub last: u64,
    /// Number of messages that were stored already.
    pub deduplicated: u32,
    /// Ids that the node made for messages without one, in order.
    pub made_ids: Vec<String>,
}

/// Final status of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// The author completed the message.
    Complete,
    /// The connection of the author or the node failed while the message was streamed.
    Interrupted,
    /// The author aborted the message.
    Aborted,
    /// A user stopped the message.
    Stopped,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Sequence number, from 1.
    pub seq: u64,
    /// When it was appended, in milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// Message id.
    pub id: String,
    /// Role of the author.
    pub role: String,
    /// Name of the author; may be empty.
    pub from: String,
    /// Final status.
    pub status: MessageStatus,
    /// Number of model tokens.
    pub tokens: u32,
    /// True if `tokens` is an estimate.
    pub is_estimated: bool,
    /// Parts of the message, as a JSON array.
    pub parts: Bytes,
    /// Metadata as a JSON object, or empty.
    pub metadata: Bytes,
}

/// Result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePage {
    /// Sequence number of the oldest message retained.
    pub start: u64,
    /// Sequence number of the newest message; 0 if there is none.
    pub head: u64,
    /// Messages in order; the conversation may continue after the last.
    pub messages: Vec<Message>,
}

impl NewMessage {
    /// Creates a message with a random id.
    pub fn new(role: impl Into<String>, parts: impl Into<String>) -> Self {
        Self {
            id: format!("m-{:032x}", fastrand::u128(..)),
            role: role.into(),
            from: String::new(),
            tokens: None,
            parts: parts.into(),
            metadata: String::new(),
        }
    }
}

impl Client {
    /// Returns the conversation `name` (`org/namespace/x`, or just `x`). The first append creates
    /// it.
    pub fn conversation(&self, name: &str) -> Result<Conversation, NameError> {
        let name = Name::parse(name)?;
        let handle = StreamHandle::new(self, name.as_str(), Cast::Conversation);
        Ok(Conversation { name, handle })
    }
}

impl Conversation {
    /// Returns the full name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Sets how long an append or a read may take; `None` for no limit.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.handle.deadline = Timeout::new(deadline.into());
        self
    }

    /// Appends messages, all or none, and waits until they are on disk. A retry is safe: a message
    /// whose id is stored already is not appended again.
    pub async fn append(&self, messages: &[NewMessage]) -> Result<AppendedBatch, CallError> {
        self.try_append(None, messages).await
    }

    /// Appends messages if the newest message has the sequence number `expected` (0 for an empty
    /// conversation). Otherwise fails with `conflict`; [`Conversation::head_of_conflict`] returns
    /// the actual number. A retry of an append that succeeded succeeds again.
    pub async fn append_expecting(
        &self,
        expected: u64,
        messages: &[NewMessage],
    ) -> Result<AppendedBatch, CallError> {
        self.try_append(Some(expected), messages).await
    }

    /// Returns the newest sequence number from a `conflict` error; `None` for other errors.
    pub fn head_of_conflict(error: &CallError) -> Option<u64> {
        number_of_conflict(error)
    }

    async fn try_append(
        &self,
        expected: Option<u64>,
        messages: &[NewMessage],
    ) -> Result<AppendedBatch, CallError> {
        let records: Vec<_> = messages.iter().map(encode).collect();
        let payload = self.handle.append(expected, &records).await?;
        let appended =
            AppendedMessages::decode(&payload).map_err(|error| CallError::malformed(&error))?;
        Ok(AppendedBatch {
            first: appended.first,
            last: appended.next.saturating_sub(1),
            deduplicated: appended.deduplicated,
            made_ids: appended.made.iter().map(str::to_owned).collect(),
        })
    }

    /// Reads messages after sequence number `after`, with the default [`ReadLimit`].
    pub async fn read(&self, after: u64) -> Result<MessagePage, CallError> {
        self.read_at_most(after, ReadLimit::default()).await
    }

    /// Reads messages after sequence number `after`, up to `limit`.
    pub async fn read_at_most(
        &self,
        after: u64,
        limit: ReadLimit,
    ) -> Result<MessagePage, CallError> {
        let page = self.handle.read(after.saturating_add(1), limit).await?;
        let messages = page.records.into_iter().map(Message::decode);
        Ok(MessagePage {
            start: page.start,
            head: page.next.saturating_sub(1),
            messages: messages.collect::<Result<_, _>>()?,
        })
    }

    /// Reads messages after sequence number `after` and waits for new ones. The conversation need
    /// not exist yet.
    pub fn follow(&self, after: u64) -> FollowMessages {
        FollowMessages(Follow::new(self.handle.clone(), after.saturating_add(1)))
    }
}

/// Existing and future messages of a conversation, from [`Conversation::follow`].
///
/// The stream survives reconnects and continues after the last message that it yielded. It ends
/// with an error followed by `None`.
#[must_use = "nothing is read unless it is polled"]
#[derive(Debug)]
pub struct FollowMessages(Follow);

impl FollowMessages {
    /// Returns the next message; waits without a limit.
    pub async fn next(&mut self) -> Option<Result<Message, CallError>> {
        let record = self.0.next().await?;
        Some(record.and_then(Message::decode))
    }
}

impl Message {
    fn decode(record: Record) -> Result<Self, CallError> {
        let message =
            wire::Message::decode(&record.body).map_err(|error| CallError::malformed(&error))?;
        Ok(Self {
            seq: record.offset,
            time_ms: record.time_ms,
            id: message.id.to_owned(),
            role: message.role.to_owned(),
            from: message.from.to_owned(),
            status: status(message.status)?,
            tokens: message.tokens,
            is_estimated: message.is_estimated,
            parts: record.body.slice_ref(message.parts),
            metadata: record.body.slice_ref(message.metadata),
        })
    }
}

fn status(number: u8) -> Result<MessageStatus, CallError> {
    match number {
        0 => Ok(MessageStatus::Complete),
        1 => Ok(MessageStatus::Interrupted),
        2 => Ok(MessageStatus::Aborted),
        3 => Ok(MessageStatus::Stopped),
        _ => {
            let message = format!("unknown message status {number}");
            Err(CallError::new(ErrorCode::Protocol, message))
        }
    }
}

fn encode(message: &NewMessage) -> Vec<u8> {
    let mut record = Vec::with_capacity(message.parts.len() + message.metadata.len() + 96);
    wire::NewMessage {
        id: &message.id,
        role: &message.role,
        from: &message.from,
        tokens: message.tokens,
        metadata: message.metadata.as_bytes(),
        parts: message.parts.as_bytes(),
    }
    .encode(&mut record);
    record
}
