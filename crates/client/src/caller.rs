//! Calling one callee: a server that is connected directly, or an agent behind a node.

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
/// Whether there is a node between is a matter of the address and of nothing else:
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
    /// Empty when the callee is at the other end of the connection.
    name: Arc<str>,
}

impl Caller {
    /// Connects to a server (`tcp://HOST:PORT`, `tls://HOST:PORT`, `unix:///PATH`,
    /// `inproc://NAME`), or to a node and means the agent that is named behind a `#`.
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

    /// Calls a method. The call is made when it is awaited; see [`Call`] for what it can be told.
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

    /// Calls a method with each of `bodies`, at most `concurrency` at a time, and yields the
    /// replies in the same order. A window that slides: the next call is made as soon as the
    /// oldest reply was taken, not when all of a batch are there.
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

    /// Calls a method with each of `bodies` at once, as far as the window allows: one lock, one
    /// run of frames, one write. The outcomes stand in the same order.
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

    /// Calls a method that answers with any number of items. The call is made when the first item
    /// is asked for.
    pub fn stream<B: AsRef<[u8]>>(&self, method: &str, body: B) -> Replies<B> {
        Replies::new(self.clone(), method, body)
    }

    /// Sends to a method and does not wait for anything but room: there is no answer.
    pub fn one_way<'a, B: AsRef<[u8]>>(&'a self, method: &'a str, body: B) -> OneWay<'a, B> {
        OneWay::new(self.core(), self.target(method), body)
    }

    /// Calls a method many times with one function for all the answers: no future, no channel and
    /// no allocation for a call. See [`Callbacks`].
    pub fn callbacks<F>(&self, method: &str, function: F) -> Callbacks
    where
        F: Fn(u64, Result<&[u8], &CallError>) + Send + Sync + 'static,
    {
        Callbacks::new(self.clone(), method, function)
    }

    /// Calls a method once; `function` is called with the outcome, exactly once, by the task of
    /// the connection: it must not block. Fails, without calling it, when the window is full or
    /// there is no connection.
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

    /// The connection that is used.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The agent's name; empty for a server at the other end of the connection.
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

/// An address, and the agent's name behind its `#`.
pub(crate) fn split_name(text: &str) -> Result<(&str, Option<Name>), ConnectError> {
    match text.split_once('#') {
        None => Ok((text, None)),
        Some((address, name)) => Ok((address, Some(Name::parse(name)?))),
    }
}
