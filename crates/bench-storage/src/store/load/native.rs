//! Appends to conversations over the native protocol: one connection for each user.

use client::{Client, Conversation, NewMessage};

use super::conversation_cursor::ConversationCursor;
use crate::store::{LoadSpec, message};
use bench::workload::role::Failure;

/// A slot on a user's connection.
pub(super) struct Slot {
    client: Client,
    turn: ConversationCursor,
    conversation: Conversation,
    /// Number of the user's conversation.
    conversation_number: u64,
    /// Message to append, each time with another id.
    message: NewMessage,
    /// User and slot. Together with a number that is never reused it identifies a message.
    name: String,
    number: u64,
}

/// Connects a user and returns its slots.
pub(super) async fn open(
    spec: &LoadSpec,
    vu: u32,
) -> Result<impl Iterator<Item = Slot> + use<>, Failure> {
    let client = Client::builder().connect(&spec.address).await?;
    let turn = ConversationCursor::of(spec, vu);
    let conversation = client.conversation(&turn.name(0))?;
    let parts = message::parts(&message::text(spec.size, vu));
    let slot = move |index| Slot {
        client: client.clone(),
        turn: turn.clone(),
        conversation: conversation.clone(),
        conversation_number: 0,
        message: NewMessage::new("user", parts.clone()),
        name: format!("{vu}-{index}"),
        number: 0,
    };
    Ok((0..spec.pipeline).map(slot))
}

impl Slot {
    pub(super) async fn append(&mut self) -> Result<(), String> {
        let next = self.turn.next();
        if next != self.conversation_number {
            let conversation = self.client.conversation(&self.turn.name(next));
            self.conversation = conversation.map_err(|_| "invalid_name".to_owned())?;
            self.conversation_number = next;
        }
        self.number += 1;
        self.message.id = format!("{}-{}", self.name, self.number);
        let message = std::slice::from_ref(&self.message);
        match self.conversation.append(message).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.code.as_str().to_owned()),
        }
    }
}
