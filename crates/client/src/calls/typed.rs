//! Typed calls: bodies as values instead of bytes.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};

use model::ErrorCode;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::calls::options::option_methods;
use crate::{Call, CallError, Caller, Context, Fault, Request, Sent, Server};

/// Converts values to bytes and back. This crate has [`MessagePack`] and [`Json`]; others can be
/// implemented.
pub trait Codec: Copy + Send + Sync + 'static {
    /// Name for error messages.
    const NAME: &'static str;

    /// Encodes a value; the error is a message for people.
    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, String>;

    /// Decodes a value; the error is a message for people.
    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String>;
}

/// MessagePack with structs as arrays: compact; the default of [`Caller::call_typed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessagePack;

/// JSON: for callees in languages without MessagePack, and readable by people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json;

impl Codec for MessagePack {
    const NAME: &'static str = "MessagePack";

    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, String> {
        rmp_serde::to_vec(value).map_err(|error| error.to_string())
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
        rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
    }
}

impl Codec for Json {
    const NAME: &'static str = "JSON";

    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, String> {
        serde_json::to_vec(value).map_err(|error| error.to_string())
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}

/// A [`Caller`] that sends and receives values, from [`Caller::typed`].
///
/// ```
/// use telpher_client::{Caller, Json, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::new()
///     .handle_typed(Json, "add", |_, (a, b): (i64, i64)| async move { Ok(a + b) });
/// let listening = server.listen("tcp://127.0.0.1:0").await?;
///
/// let caller = Caller::connect(listening.address()).await?.typed(Json);
/// let sum: i64 = caller.call("add", &(2, 3)).await?;
/// assert_eq!(sum, 5);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TypedCaller<C> {
    caller: Caller,
    codec: PhantomData<C>,
}

impl Caller {
    /// Returns a caller that sends and receives values in the format of `codec`.
    pub fn typed<C: Codec>(self, codec: C) -> TypedCaller<C> {
        let _ = codec;
        TypedCaller {
            caller: self,
            codec: PhantomData,
        }
    }

    /// Calls a method with a value encoded as [`MessagePack`].
    pub fn call_typed<'a, Req, Resp>(
        &'a self,
        method: &'a str,
        request: &Req,
    ) -> TypedCall<'a, Resp, MessagePack>
    where
        Req: Serialize + ?Sized,
        Resp: DeserializeOwned,
    {
        TypedCall::new(self, method, request)
    }
}

impl<C: Codec> TypedCaller<C> {
    /// Calls a method with a value.
    pub fn call<'a, Req, Resp>(&'a self, method: &'a str, request: &Req) -> TypedCall<'a, Resp, C>
    where
        Req: Serialize + ?Sized,
        Resp: DeserializeOwned,
    {
        TypedCall::new(&self.caller, method, request)
    }

    /// Returns the underlying caller, which sends bytes.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }
}

/// A typed call in progress; awaiting it returns the decoded reply.
#[must_use = "a call does nothing unless it is awaited"]
pub struct TypedCall<'a, Resp, C> {
    call: Call<'a, Vec<u8>>,
    method: &'a str,
    /// Error of the encoding; the call is not made then.
    error: Option<CallError>,
    types: PhantomData<fn() -> (Resp, C)>,
}

impl<'a, Resp: DeserializeOwned, C: Codec> TypedCall<'a, Resp, C> {
    fn new<Req: Serialize + ?Sized>(caller: &'a Caller, method: &'a str, request: &Req) -> Self {
        let (body, error) = match C::encode(request) {
            Ok(body) => (body, None),
            Err(error) => {
                let message = format!("the request cannot be encoded as {}: {error}", C::NAME);
                let error = CallError::new(ErrorCode::InvalidArgument, message);
                (Vec::new(), Some(error))
            }
        };
        Self {
            call: caller.call(method, body),
            method,
            error,
            types: PhantomData,
        }
    }

    option_methods! {
        call.options:
        /// Sets the deadline, as [`Call::deadline`].
        deadline;
        /// Limits the deadline to that of a request, as [`Call::within`].
        within;
        /// Sets the retry policy, as [`Call::retry`].
        retry;
        /// Sets what happens when the window is full, as [`Call::when_full`].
        when_full;
        /// Sends metadata, as [`Call::metadata`].
        metadata;
    }
}

impl<Resp: DeserializeOwned, C: Codec> Future for TypedCall<'_, Resp, C> {
    type Output = Result<Resp, CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let reply = match &this.error {
            None => ready!(Pin::new(&mut this.call).poll(cx)),
            Some(error) => Err(error.clone()),
        };
        Poll::Ready(reply.and_then(|body| {
            C::decode(&body).map_err(|error| {
                let method = this.method;
                let name = C::NAME;
                let message =
                    format!("the reply of `{method}` cannot be decoded as {name}: {error}");
                CallError::new(ErrorCode::Protocol, message).with_sent(Sent::Yes)
            })
        }))
    }
}

impl<Resp, C> std::fmt::Debug for TypedCall<'_, Resp, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TypedCall({})", self.method)
    }
}

impl Server {
    /// Registers a typed handler for `method`. A request that cannot be decoded is answered with
    /// `invalid_argument`.
    #[must_use]
    pub fn handle_typed<C, F, Fut, Req, Resp>(self, codec: C, method: &str, function: F) -> Self
    where
        C: Codec,
        F: Fn(Context, Req) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Resp, Fault>> + Send + 'static,
        Req: DeserializeOwned + 'static,
        Resp: Serialize + 'static,
    {
        let _ = codec;
        self.handle(method, move |request: Request| {
            let answer = C::decode(&request.body)
                .map(|value| function(request.context, value))
                .map_err(|error| {
                    let message = format!("the request cannot be decoded as {}: {error}", C::NAME);
                    Fault::with_code(ErrorCode::InvalidArgument, message)
                });
            async move {
                let value = answer?.await?;
                C::encode(&value).map_err(|error| {
                    let message = format!("the reply cannot be encoded as {}: {error}", C::NAME);
                    Fault::with_code(ErrorCode::Internal, message)
                })
            }
        })
    }
}
