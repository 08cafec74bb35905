//! The echo service as `tonic-build` would generate it, and its server.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use contract::{Failure, Flags, Outcome, Serve, announce, end_with_parent};
use peers::{Listener, runtime};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};
use tower::Service;

use crate::codec::Raw;
use crate::{BIDI, BODY_SIZE_MAX, STREAMS_MAX, UNARY, WINDOW_SIZE};

/// Serves until the parent goes.
pub(crate) fn serve(mut flags: Flags) -> Outcome<()> {
    let options = Serve::take(&mut flags)?;
    flags.finish()?;
    let runtime = runtime()?;
    let listener = runtime.block_on(Listener::bind(&options.listen))?;
    end_with_parent(listener.files());
    announce(&listener.address()?)?;
    let router = Server::builder()
        .initial_stream_window_size(WINDOW_SIZE)
        .initial_connection_window_size(WINDOW_SIZE)
        .max_concurrent_streams(STREAMS_MAX)
        .add_service(Echo);
    let served = runtime.block_on(async {
        match listener {
            Listener::Tcp(listener) => {
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                router.serve_with_incoming(incoming).await
            }
            Listener::Unix(listener, _) => {
                router
                    .serve_with_incoming(UnixListenerStream::new(listener))
                    .await
            }
        }
    });
    served.map_err(|error| Failure::run(format!("cannot serve: {error}"), "raise `ulimit -n`"))
}

#[derive(Clone, Copy)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "bench.Echo";
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = Grpc::new(Raw).max_decoding_message_size(BODY_SIZE_MAX);
            Ok(match request.uri().path() {
                UNARY => grpc.unary(Unary, request).await,
                BIDI => grpc.streaming(Bidi, request).await,
                _ => Status::unimplemented("bench.Echo has Unary and Bidi").into_http(),
            })
        })
    }
}

struct Unary;

impl Service<Request<Bytes>> for Unary {
    type Response = Response<Bytes>;
    type Error = Status;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

struct Bidi;

impl Service<Request<Streaming<Bytes>>> for Bidi {
    type Response = Response<Streaming<Bytes>>;
    type Error = Status;
    type Future = Ready<Result<Response<Streaming<Bytes>>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    /// The stream of replies is the stream of requests.
    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}
