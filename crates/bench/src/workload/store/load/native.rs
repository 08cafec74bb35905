//! Appends to conversations over the native protocol: one connection for each user.

use client::{Client, Conversation, NewMessage};

use crate::workload::role::Failure;
use crate::workload::store::{LoadSpec, message};

/// A place on a user's connection.
pub(super) struct Place {
    conversation: Conversation,
    /// What is appended, each time under another id.
    message: NewMessage,
    /// The user and its place; with a number that is never used twice it names a message.
    name: String,
    number: u64,
}

/// Connects a user.
pub(super) async fn open(
    spec: &LoadSpec,
    vu: u32,
) -> Result<impl Iterator<Item = Place> + use<>, Failure> {
    let client = Client::builder().connect(&spec.address).await?;
    let conversation = client.conversation(&format!("vu-{vu}"))?;
    let parts = message::parts(&message::text(spec.size, vu));
    let place = move |place| Place {
        conversation: conversation.clone(),
        message: NewMessage::new("user", parts.clone()),
        name: format!("{vu}-{place}"),
        number: 0,
    };
    Ok((0..spec.pipeline).map(place))
}

impl Place {
    pub(super) async fn append(&mut self) -> Result<(), String> {
        self.number += 1;
        self.message.id = format!("{}-{}", self.name, self.number);
        let appended = self
            .conversation
            .append(std::slice::from_ref(&self.message))
            .await;
        match appended {
            Ok(_) => Ok(()),
            Err(error) => Err(error.code.as_str().to_owned()),
        }
    }
}
