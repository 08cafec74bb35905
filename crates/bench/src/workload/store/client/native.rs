//! Conversations over the native protocol.

use client::{CallError, ErrorCode, Message, NewMessage};
use serde::Deserialize;

use super::{Acked, Stored, ToAppend, Trouble};
use crate::workload::role::Failure;
use crate::workload::store::message;

pub(in crate::workload::store) struct Client {
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
        messages: &[ToAppend],
    ) -> Result<Acked, Trouble> {
        let name = self.client.conversation(conversation);
        let conversation = name.map_err(|error| Trouble::Refused(error.to_string()))?;
        let new = |one: &ToAppend| NewMessage {
            id: one.id.clone(),
            ..NewMessage::new("user", message::parts(&one.text))
        };
        let messages: Vec<_> = messages.iter().map(new).collect();
        let appended = conversation
            .append(&messages)
            .await
            .map_err(|error| trouble(&error))?;
        Ok(Acked {
            first_seq: appended.first,
            last_seq: appended.last,
            deduplicated: appended.deduplicated.into(),
        })
    }

    pub(super) async fn read(
        &mut self,
        conversation: &str,
        after: u64,
    ) -> Result<Vec<Stored>, Failure> {
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
fn trouble(error: &CallError) -> Trouble {
    match error.code {
        ErrorCode::Unconfirmed | ErrorCode::DeadlineExceeded | ErrorCode::Unavailable => {
            Trouble::Unconfirmed(error.to_string())
        }
        code => Trouble::Refused(code.as_str().to_owned()),
    }
}

fn stored(message: Message) -> Result<Stored, Failure> {
    let parts: Vec<Part> = serde_json::from_slice(&message.parts)?;
    Ok(Stored {
        seq: message.seq,
        id: message.id,
        text: parts
            .into_iter()
            .next()
            .map_or_else(String::new, |part| part.text),
    })
}
