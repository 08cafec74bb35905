//! `Caller`: calls one server that is connected directly, or one agent behind a node.

use std::sync::Arc;

use model::Name;

use crate::call_all::CallAll;
use crate::core::Core;
use crate::link::to_method;
use crate::options::Options;
use crate::routes::Target;
use crate::streaming::Replies;
use crate::{Call, CallError, Callbacks, Client, ConnectError, OneWay};

/// Calls the methods of one callee. Cheap to clone.
///
/// The address alone decides whether the calls go through a node:
///
/// ```no_run
/// # async fn example() -> Result<(), telpher_client::ConnectError> {
/// use telpher_client::Caller;
///
/// let direct = Caller::connect("tcp://127.0.0.1:7410").await?;
/// let through_a_node = Caller::connect("tcp://127.0.0.1:7400#acme/demo/echo").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Caller {
    client: Client,
    /// Agent name; empty when the callee is at the other end of the connection.
    name: Arc<str>,
}

impl Caller {
    /// Connects to a server (`tcp://HOST:PORT`, `tls://HOST:PORT`, `unix:///PATH`,
    /// `inproc://NAME`), or to the agent whose name follows a `#` after the address of a node.
    pub async fn connect(address: &str) -> Result<Self, ConnectError> {
        Client::builder().connect_caller(address).await
    }

    pub(crate) async fn connect_with(options: Options, text: &str) -> Result<Self, ConnectError> {
        let (address, name) = split_name(text)?;
        let client = Client::connect_with(options, address.parse()?).await?;
        let address = || address.to_owned();
        match (client.is_node(), &name) {
            (true, None) => Err(ConnectError::NameMissing { address: address() }),
            (false, Some(_)) => Err(ConnectError::NameUnused { address: address() }),
            _ => Ok(Self::new(client, name.as_ref().map_or("", Name::as_str))),
        }
    }

    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self {
            client,
            name: name.into(),
        }
    }

    /// Calls a method. Awaiting the returned [`Call`] sends it; its methods set deadline, retries
    /// and metadata.
    ///
    /// ```
    /// use telpher_client::{Caller, Server};
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Server::new().handle("echo", |request: telpher_client::Request| async { Ok(request.body) });
    /// # let listening = server.listen("tcp://127.0.0.1:0").await?;
    /// let caller = Caller::connect(listening.address()).await?;
    /// let reply = caller.call("echo", "hello").deadline(Duration::from_secs(2)).await?;
    /// assert_eq!(reply, "hello");
    ///
    /// let error = caller.call("eco", "hello").await.unwrap_err();
    /// assert_eq!(error.code, model::ErrorCode::UnknownMethod);
    /// assert!(error.message.contains("did you mean `echo`?"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn call<'a, B: AsRef<[u8]>>(&'a self, method: &'a str, body: B) -> Call<'a, B> {
        Call::new(self.core(), self.target(method), body)
    }

    /// Calls a method with each of `bodies`, at most `concurrency` calls at a time, and yields the
    /// replies in the order of the bodies. The window slides: the next call is made as soon as the
    /// oldest reply was taken, not when a whole batch is complete.
    ///
    /// ```
    /// # use telpher_client::{Caller, Server};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Server::new().handle("echo", |request: telpher_client::Request| async { Ok(request.body) });
    /// # let listening = server.listen("tcp://127.0.0.1:0").await?;
    /// # let caller = Caller::connect(listening.address()).await?;
    /// let mut replies = caller.call_all("echo", (0..100).map(|n| n.to_string()), 10);
    /// let mut next = 0;
    /// while let Some(reply) = replies.next().await {
    ///     assert_eq!(reply?, next.to_string());
    ///     next += 1;
    /// }
    /// assert_eq!(next, 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_all<'a, I>(
        &'a self,
        method: &'a str,
        bodies: I,
        concurrency: usize,
    ) -> CallAll<'a, I::IntoIter>
    where
        I: IntoIterator,
        I::Item: AsRef<[u8]>,
    {
        CallAll::new(self, method, bodies.into_iter(), concurrency)
    }

    /// Calls a method with all of `bodies` at once, as far as the window allows, with one lock, one
    /// run of frames and one write. Returns the outcomes in the order of the bodies.
    pub async fn call_batch<I>(
        &self,
        method: &str,
        bodies: I,
    ) -> Vec<Result<bytes::Bytes, CallError>>
    where
        I: IntoIterator,
        I::Item: AsRef<[u8]>,
    {
        let mut replies = self.call_all(method, bodies, usize::MAX);
        let mut outcomes = Vec::new();
        while let Some(outcome) = replies.next().await {
            outcomes.push(outcome);
        }
        outcomes
    }

    /// Calls a method that replies with any number of items. Asking for the first item makes the
    /// call.
    pub fn stream<B: AsRef<[u8]>>(&self, method: &str, body: B) -> Replies<B> {
        Replies::new(self.clone(), method, body)
    }

    /// Sends a message to a method. There is no reply; awaiting it waits only until the peer has
    /// room.
    pub fn one_way<'a, B: AsRef<[u8]>>(&'a self, method: &'a str, body: B) -> OneWay<'a, B> {
        OneWay::new(self.core(), self.target(method), body)
    }

    /// Calls a method many times and passes every reply to one function, without a future, a
    /// channel or an allocation per call. See [`Callbacks`].
    pub fn callbacks<F>(&self, method: &str, function: F) -> Callbacks
    where
        F: Fn(u64, Result<&[u8], &CallError>) + Send + Sync + 'static,
    {
        Callbacks::new(self.clone(), method, function)
    }

    /// Calls a method once and passes the outcome to `function`, exactly once. The connection's
    /// task calls `function`, so it must not block. Fails, without calling `function`, when the
    /// window is full or there is no connection.
    pub fn on_reply<F>(
        &self,
        method: &str,
        body: impl AsRef<[u8]>,
        function: F,
    ) -> Result<(), CallError>
    where
        F: FnOnce(Result<&[u8], &CallError>) + Send + 'static,
    {
        crate::callback::on_reply(self, method, body.as_ref(), Box::new(function))
    }

    /// Returns the connection that this caller uses.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the agent's name; empty for a server at the other end of the connection.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn target<'a>(&'a self, method: &'a str) -> Target<'a> {
        to_method(&self.name, method)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.client.core()
    }
}

/// Splits an address into the part before `#` and the agent's name after it.
pub(crate) fn split_name(text: &str) -> Result<(&str, Option<Name>), ConnectError> {
    match text.split_once('#') {
        None => Ok((text, None)),
        Some((address, name)) => Ok((address, Some(Name::parse(name)?))),
    }
}
