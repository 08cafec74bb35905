//! Client operations that need a node: send, request, write to memory, subscribe.

use model::Name;
use wire::{Cast, Receipt};

use crate::agents::one_way::Verb;
use crate::state::clock::Timeout;
use crate::state::link::to_method;
use crate::state::routes::Target;
use crate::{Call, CallError, Client, OneWay, SubscribeOptions, Subscription};

impl Client {
    /// Subscribes to a name. A name without an instance gets a unique instance; a name with an
    /// instance takes that instance over from the connection that had it. After a reconnect the
    /// client subscribes again under the same instance.
    pub async fn subscribe(&self, name: &Name) -> Result<Subscription, CallError> {
        self.subscribe_with(name, SubscribeOptions::new()).await
    }

    /// Subscribes with options.
    pub async fn subscribe_with(
        &self,
        name: &Name,
        options: SubscribeOptions,
    ) -> Result<Subscription, CallError> {
        crate::agents::subscription::subscribe(self, name, options).await
    }

    /// Sends a message to one subscriber of the name ([`Cast::Any`]: round robin over the
    /// instances, or the instance in the name) or to all subscribers ([`Cast::All`]). The node does
    /// not keep the message: a subscriber that is full or not connected does not get it.
    pub fn send<'a, B: AsRef<[u8]>>(
        &'a self,
        name: &'a Name,
        cast: Cast,
        body: B,
    ) -> OneWay<'a, B> {
        OneWay::new(self.core(), to_name(name, cast), body)
    }

    /// Sends without waiting. Fails with `busy` when there is no room.
    pub fn try_send(
        &self,
        name: &Name,
        cast: Cast,
        body: impl AsRef<[u8]>,
    ) -> Result<(), CallError> {
        self.send(name, cast, body).now()
    }

    /// Sends and waits for the node's report: for how many subscribers the message was queued, and
    /// how many were full.
    pub async fn send_reported(
        &self,
        name: &Name,
        cast: Cast,
        body: impl AsRef<[u8]>,
    ) -> Result<Receipt, CallError> {
        self.send(name, cast, body).reported().await
    }

    /// Sends a request to one subscriber of the name and waits for its reply. Equals a call of the
    /// method with the empty name.
    pub fn request<'a, B: AsRef<[u8]>>(&'a self, name: &'a Name, body: B) -> Call<'a, B> {
        Call::new(self.core(), to_method(name.as_str(), ""), body)
    }

    /// Hands a message to the node for one current subscriber of the name and waits until it is
    /// queued. Returns the number of subscribers it was queued for; 0 is no error. The message is
    /// in memory only and lost if the subscriber fails; [`Client::write`] stores it on disk.
    pub async fn write_to_memory(
        &self,
        name: &Name,
        body: impl AsRef<[u8]>,
    ) -> Result<u32, CallError> {
        let write = OneWay::new(self.core(), to_name(name, Cast::Any), body);
        let payload = write.answered(Verb::WriteToMemory).await?;
        wire::decode_copies(&payload).map_err(|error| CallError::malformed(&error))
    }

    /// Returns the deadline of operations without one of their own.
    pub(crate) fn default_deadline(&self) -> Timeout {
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
