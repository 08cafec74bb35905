//! Conversations over the native protocol.

use client::{CallError, ErrorCode, Message, NewMessage};
use serde::Deserialize;

use super::{AppendAck, AppendFailure, OutgoingMessage, StoredMessage};
use crate::store::message;
use bench::workload::role::Failure;

pub(in crate::store) struct Client {
    client: client::Client,
}

#[derive(Deserialize)]
struct Part {
    text: String,
}

impl Client {
    pub(super) async fn open(address: &str) -> Result<Self, Failure> {
        Ok(Self {
            client: client::Client::builder().connect(address).await?,
        })
    }

    pub(super) async fn append(
        &mut self,
        conversation: &str,
        messages: &[OutgoingMessage],
    ) -> Result<AppendAck, AppendFailure> {
        let name = self.client.conversation(conversation);
        let conversation = name.map_err(|error| AppendFailure::Refused(error.to_string()))?;
        let new = |one: &OutgoingMessage| NewMessage {
            id: one.id.clone(),
            ..NewMessage::new("user", message::parts(&one.text))
        };
        let messages: Vec<_> = messages.iter().map(new).collect();
        let appended = conversation
            .append(&messages)
            .await
            .map_err(|error| append_failure(&error))?;
        Ok(AppendAck {
            first_seq: appended.first,
            last_seq: appended.last,
            deduplicated: appended.deduplicated.into(),
        })
    }

    pub(super) async fn read(
        &mut self,
        conversation: &str,
        after: u64,
    ) -> Result<Vec<StoredMessage>, Failure> {
        let page = self.client.conversation(conversation)?.read(after).await;
        match page {
            Ok(page) => page.messages.into_iter().map(stored).collect(),
            Err(error) if error.code == ErrorCode::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Classifies an error. A lost connection leaves the outcome unknown, and so does a failed
/// reconnect.
fn append_failure(error: &CallError) -> AppendFailure {
    match error.code {
        ErrorCode::Unconfirmed | ErrorCode::DeadlineExceeded | ErrorCode::Unavailable => {
            AppendFailure::Unconfirmed(error.to_string())
        }
        code => AppendFailure::Refused(code.as_str().to_owned()),
    }
}

fn stored(message: Message) -> Result<StoredMessage, Failure> {
    let parts: Vec<Part> = serde_json::from_slice(&message.parts)?;
    Ok(StoredMessage {
        seq: message.seq,
        id: message.id,
        text: parts
            .into_iter()
            .next()
            .map_or_else(String::new, |part| part.text),
    })
}
