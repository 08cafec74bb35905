//! The verbs that need a node: sending, writing to memory and subscribing by name.

use model::{ErrorCode, Name};
use wire::{Cast, Receipt};

use crate::clock::Timeout;
use crate::link::to_method;
use crate::one_way::Verb;
use crate::routes::Target;
use crate::{Call, CallError, Client, OneWay, SubscribeOptions, Subscription};

impl Client {
    /// Subscribes to a name. A name without an instance gets one that nobody else has; one with
    /// an instance takes that over from whoever had it. The subscription is made again after a
    /// reconnect, under the same instance.
    pub async fn subscribe(&self, name: &Name) -> Result<Subscription, CallError> {
        self.subscribe_with(name, SubscribeOptions::new()).await
    }

    /// Subscribes with other options.
    pub async fn subscribe_with(
        &self,
        name: &Name,
        options: SubscribeOptions,
    ) -> Result<Subscription, CallError> {
        crate::subscription::subscribe(self, name, options).await
    }

    /// Sends to one subscriber of the name ([`Cast::Any`]: in turn over its instances, or the one
    /// that the name carries) or to all of them ([`Cast::All`]), and forgets it: a subscriber that
    /// is full or not there does not get it.
    pub fn send<'a, B: AsRef<[u8]>>(
        &'a self,
        name: &'a Name,
        cast: Cast,
        body: B,
    ) -> OneWay<'a, B> {
        OneWay::new(self.core(), to_name(name, cast), body)
    }

    /// Sends without waiting for anything: `busy` when there is no room for it now.
    pub fn try_send(
        &self,
        name: &Name,
        cast: Cast,
        body: impl AsRef<[u8]>,
    ) -> Result<(), CallError> {
        self.send(name, cast, body).now()
    }

    /// Sends and waits until the node says how many subscribers it was queued for and how many
    /// were full.
    pub async fn send_reported(
        &self,
        name: &Name,
        cast: Cast,
        body: impl AsRef<[u8]>,
    ) -> Result<Receipt, CallError> {
        self.send(name, cast, body).reported().await
    }

    /// Sends a request to one subscriber of the name and waits for its reply. The same as a call
    /// of the empty method.
    pub fn request<'a, B: AsRef<[u8]>>(&'a self, name: &'a Name, body: B) -> Call<'a, B> {
        Call::new(self.core(), to_method(name.as_str(), ""), body)
    }

    /// Hands a message over to the node for one of those who are subscribed to the name at this
    /// moment, and waits until it is queued. Returns for how many: none is as good. It is lost with
    /// whoever has it; [`Client::write`] keeps it.
    pub async fn write_to_memory(
        &self,
        name: &Name,
        body: impl AsRef<[u8]>,
    ) -> Result<u32, CallError> {
        let write = OneWay::new(self.core(), to_name(name, Cast::Any), body);
        let payload = write.answered(Verb::WriteToMemory).await?;
        wire::decode_copies(&payload).map_err(|error| protocol(&error))
    }

    /// How long the verbs without a deadline of their own may take.
    pub(crate) fn patience(&self) -> Timeout {
        self.core().options.deadline
    }
}

fn to_name(name: &Name, cast: Cast) -> Target<'_> {
    Target {
        name: name.as_str(),
        method: "",
        cast,
    }
}

pub(crate) fn protocol(error: &wire::Malformed) -> CallError {
    CallError::new(ErrorCode::Protocol, error.to_string())
}
