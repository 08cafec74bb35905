//! Conversations that the node keeps: saying something, reading, following.

use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, Name, NameError};
use wire::{Append, AppendedMessages, Cast, Kind};

use crate::clock::Timeout;
use crate::follow::Follow;
use crate::messaging::protocol;
use crate::stream::{Extract, ReadLimit, Record, ask, number_of_conflict, outgoing};
use crate::{CallError, Client};

/// A conversation that a node keeps, from [`Client::conversation`]. Cheap to clone.
///
/// Whatever is acknowledged is on disk. Numbers of messages are dense from 1 and never used twice.
#[derive(Clone, Debug)]
pub struct Conversation {
    client: Client,
    name: Name,
    deadline: Timeout,
}

/// A message that is to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// What it is called; a retry under the same id does not append it twice. If it is empty the node
    /// makes one, and a retry appends it again.
    pub id: String,
    /// What its author is in the conversation: `user`, `assistant`, `system`, `tool`, …
    pub role: String,
    /// Who wrote it, empty for nobody in particular.
    pub from: String,
    /// What it costs a model, if that is known.
    pub tokens: Option<u32>,
    /// JSON, an array of parts.
    pub parts: String,
    /// JSON, an object, or empty.
    pub metadata: String,
}

/// Where messages went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendedBatch {
    /// The smallest number of a message of the batch.
    pub first: u64,
    /// The largest.
    pub last: u64,
    /// How many were there already.
    pub deduplicated: u32,
    /// The ids that the node made for those that came without one, in order.
    pub made_ids: Vec<String>,
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// As its author meant it to.
    Complete,
    /// The author or the node was lost while it was streamed.
    Interrupted,
    /// The author gave it up.
    Aborted,
    /// Somebody asked for it to stop.
    Stopped,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number, from 1.
    pub seq: u64,
    /// When it was appended, in milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// What it is called.
    pub id: String,
    /// What its author is in the conversation.
    pub role: String,
    /// Who wrote it, empty for nobody in particular.
    pub from: String,
    /// How it ended.
    pub status: MessageStatus,
    /// What it costs a model.
    pub tokens: u32,
    /// Whether that is an estimate.
    pub is_estimated: bool,
    /// JSON, an array of parts.
    pub parts: Bytes,
    /// JSON, an object, or empty.
    pub metadata: Bytes,
}

/// Messages that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePage {
    /// The number of the oldest message that is kept.
    pub start: u64,
    /// The number of the newest; 0 for none.
    pub head: u64,
    /// The messages, in order; the last one need not be the newest.
    pub messages: Vec<Message>,
}

impl NewMessage {
    /// One with an id of its own.
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
    /// The conversation of that name (`org/namespace/x`, or a bare `x`). It exists once something
    /// was said in it.
    pub fn conversation(&self, name: &str) -> Result<Conversation, NameError> {
        Ok(Conversation {
            client: self.clone(),
            name: Name::parse(name)?,
            deadline: self.core().options.deadline,
        })
    }
}

impl Conversation {
    /// Its full name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// How long appending and reading may take; `None` for ever.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = Timeout::new(deadline.into());
        self
    }

    /// Appends messages, all or none, and waits until they are on disk. It may be repeated: what is
    /// there already under its id is not appended again.
    pub async fn append(&self, messages: &[NewMessage]) -> Result<AppendedBatch, CallError> {
        self.try_append(None, messages).await
    }

    /// Appends messages if the newest message has the number `expected`, 0 for none; else it is a
    /// `conflict`, and [`Conversation::head_of_conflict`] says which it is. A repetition of what is
    /// there already is answered like the first.
    pub async fn append_expecting(
        &self,
        expected: u64,
        messages: &[NewMessage],
    ) -> Result<AppendedBatch, CallError> {
        self.try_append(Some(expected), messages).await
    }

    /// The number that an append would have had to expect, when that is what went wrong.
    pub fn head_of_conflict(error: &CallError) -> Option<u64> {
        number_of_conflict(error)
    }

    async fn try_append(
        &self,
        expected: Option<u64>,
        messages: &[NewMessage],
    ) -> Result<AppendedBatch, CallError> {
        let records: Vec<_> = messages.iter().map(encode).collect();
        let size: usize = records.iter().map(|record| record.len() + 4).sum();
        let mut body = Vec::with_capacity(size + 12);
        Append::encode(expected, &records, &mut body);
        let payload = self.ask(Kind::APPEND, &body).await?;
        let appended = AppendedMessages::decode(&payload).map_err(|error| protocol(&error))?;
        Ok(AppendedBatch {
            first: appended.first,
            last: appended.next.saturating_sub(1),
            deduplicated: appended.deduplicated,
            made_ids: appended.made.iter().map(str::to_owned).collect(),
        })
    }

    /// Reads messages behind a number, as many as fit into one answer.
    pub async fn read(&self, after: u64) -> Result<MessagePage, CallError> {
        self.read_at_most(after, ReadLimit::default()).await
    }

    /// Reads no more than that.
    pub async fn read_at_most(
        &self,
        after: u64,
        limit: ReadLimit,
    ) -> Result<MessagePage, CallError> {
        let body = limit.from(after.saturating_add(1));
        let payload = self.ask(Kind::READ, &body).await?;
        let extract = Extract::decode(&payload)?;
        let messages = extract.records.into_iter().map(Message::decode);
        Ok(MessagePage {
            start: extract.start,
            head: extract.next.saturating_sub(1),
            messages: messages.collect::<Result<_, _>>()?,
        })
    }

    /// Reads messages behind a number, and waits for those to come; also for the first of a
    /// conversation that does not exist yet.
    pub fn follow(&self, after: u64) -> FollowMessages {
        let (client, name) = (self.client.clone(), self.name.as_str());
        let from = after.saturating_add(1);
        FollowMessages(Follow::new(client, name, Cast::Conversation, from))
    }

    async fn ask(&self, kind: Kind, body: &[u8]) -> Result<Bytes, CallError> {
        let outgoing = outgoing(kind, Cast::Conversation, self.name.as_str(), body);
        ask(&self.client, self.deadline, &outgoing).await
    }
}

/// Messages of a conversation, and those to come, from [`Conversation::follow`].
///
/// It survives reconnects, and goes on behind the last message that it yielded. It ends with an
/// error and then `None`.
#[must_use = "nothing is read unless it is polled"]
#[derive(Debug)]
pub struct FollowMessages(Follow);

impl FollowMessages {
    /// The next message; waits for it as long as it takes.
    pub async fn next(&mut self) -> Option<Result<Message, CallError>> {
        let record = self.0.next().await?;
        Some(record.and_then(Message::decode))
    }
}

impl Message {
    fn decode(record: Record) -> Result<Self, CallError> {
        let message = wire::Message::decode(&record.body).map_err(|error| protocol(&error))?;
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
            let message = format!("a message of status {number}, which is not known here");
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
