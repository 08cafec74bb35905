//! The load over a unary call, or over one bidirectional stream per connection.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use contract::{Address, Load, Outcome, Tally};
use futures_util::TryStreamExt;
use futures_util::stream::FuturesUnordered;
use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use peers::{Caller, Gate, check_size, drive, lost, phases, tcp, unix};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};
use tower::service_fn;

use crate::codec::Raw;
use crate::{BIDI, BODY_SIZE_MAX, STREAMS_MAX, UNARY, WINDOW_SIZE};

/// One unary call per request.
pub(crate) async fn unary(load: &Load) -> Outcome<Tally> {
    let mut callers = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        callers.push(Unary(open(&load.connect).await?));
    }
    drive(load, &callers).await
}

/// One message on a stream per request.
pub(crate) async fn bidi(load: &Load) -> Outcome<Tally> {
    let mut streams = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        streams.push(Bidi::open(&load.connect).await?);
    }
    let body = Bytes::from(vec![7; load.size]);
    phases(load, async |gate| {
        streams
            .iter_mut()
            .map(|stream| stream.run(&body, load.in_flight, gate.clone()))
            .collect::<FuturesUnordered<_>>()
            .try_collect()
            .await
    })
    .await
}

/// Connects, so that a wrong address fails here and clearly.
async fn open(address: &Address) -> Outcome<Grpc<Channel>> {
    let endpoint = Endpoint::from_static("http://localhost")
        .initial_stream_window_size(WINDOW_SIZE)
        .initial_connection_window_size(WINDOW_SIZE)
        .buffer_size(STREAMS_MAX as usize);
    let connected = match address {
        Address::Tcp(address) => {
            let mut stream = Some(TokioIo::new(tcp(*address).await?));
            let connector = move |_: Uri| {
                let stream = stream.take();
                async { stream.ok_or_else(gone) }
            };
            endpoint.connect_with_connector(service_fn(connector)).await
        }
        Address::Unix(path) => {
            let mut stream = Some(TokioIo::new(unix(path).await?));
            let connector = move |_: Uri| {
                let stream = stream.take();
                async { stream.ok_or_else(gone) }
            };
            endpoint.connect_with_connector(service_fn(connector)).await
        }
    };
    match connected {
        Ok(channel) => Ok(Grpc::new(channel).max_decoding_message_size(BODY_SIZE_MAX)),
        Err(error) => Err(lost(&error.to_string())),
    }
}

/// A connection that was lost is not made again.
fn gone() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::NotConnected, "the connection is lost")
}

#[derive(Clone)]
struct Unary(Grpc<Channel>);

impl Caller for Unary {
    async fn call(&mut self, body: Bytes) -> Result<usize, String> {
        self.0.ready().await.map_err(|error| error.to_string())?;
        let path = PathAndQuery::from_static(UNARY);
        match self.0.unary(Request::new(body), path, Raw).await {
            Ok(reply) => Ok(reply.into_inner().len()),
            Err(status) => Err(status.to_string()),
        }
    }
}

/// An open stream; the replies come in the order of the requests.
struct Bidi {
    requests: UnboundedSender<Bytes>,
    replies: Streaming<Bytes>,
}

impl Bidi {
    async fn open(address: &Address) -> Outcome<Bidi> {
        let mut grpc = open(address).await?;
        grpc.ready()
            .await
            .map_err(|error| lost(&error.to_string()))?;
        let (requests, receiver) = unbounded_channel();
        let request = Request::new(UnboundedReceiverStream::new(receiver));
        match grpc
            .streaming(request, PathAndQuery::from_static(BIDI), Raw)
            .await
        {
            Ok(reply) => Ok(Bidi {
                requests,
                replies: reply.into_inner(),
            }),
            Err(status) => Err(lost(&status.to_string())),
        }
    }

    async fn run(&mut self, body: &Bytes, in_flight: usize, gate: Arc<Gate>) -> Outcome<()> {
        let mut sent_ns = VecDeque::with_capacity(in_flight);
        for start_ns in std::iter::from_fn(|| gate.first()).take(in_flight) {
            self.send(body)?;
            sent_ns.push_back(start_ns);
        }
        while let Some(start_ns) = sent_ns.pop_front() {
            match self.replies.message().await {
                Ok(Some(reply)) => check_size(reply.len(), body.len())?,
                Ok(None) => return Err(lost("the server ended the stream")),
                Err(status) => return Err(lost(&status.to_string())),
            }
            if let Some(start_ns) = gate.next(start_ns) {
                self.send(body)?;
                sent_ns.push_back(start_ns);
            }
        }
        Ok(())
    }

    fn send(&self, body: &Bytes) -> Outcome<()> {
        self.requests
            .send(body.clone())
            .map_err(|_| lost("the stream has ended"))
    }
}
