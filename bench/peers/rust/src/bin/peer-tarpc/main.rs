//! tarpc: an echo service over its serde transport with bincode, the fastest it documents.
//!
//! The limits on requests in flight are raised above every window that is measured; the deadline,
//! which tarpc does not let go of, keeps its default.

use std::process::ExitCode;

use bytes::Bytes;
use contract::{
    Address, Failure, Flags, Load, Mode, Outcome, Report, Serve, announce, end_with_parent, limit,
};
use futures_util::StreamExt;
use peers::{Caller, Listener, drive, run, runtime, tcp, undelayed, unix};
use tarpc::server::{BaseChannel, Channel};
use tarpc::tokio_serde::formats::Bincode;
use tarpc::tokio_util::codec::{Framed, LengthDelimitedCodec};
use tarpc::{client, context, serde_transport, server};
use tokio::io::{AsyncRead, AsyncWrite};

const PROGRAM: &str = "peer-tarpc";
const NOTES: &str = "tarpc, bincode over its length-delimited serde transport, TCP_NODELAY, tokio \
                     current_thread on both sides, tracing compiled out, mimalloc; serial and \
                     concurrent: futures in one task; callback: a task per call in flight, as tarpc \
                     has no callbacks";
/// Requests in flight that no queue limits.
const IN_FLIGHT_MAX: usize = 1 << 20;

#[tarpc::service]
trait Echo {
    async fn echo(body: Bytes) -> Bytes;
}

#[derive(Clone)]
struct EchoServer;

impl Echo for EchoServer {
    async fn echo(self, _: context::Context, body: Bytes) -> Bytes {
        body
    }
}

fn main() -> ExitCode {
    run(PROGRAM, serve, load)
}

fn serve(mut flags: Flags) -> Outcome<()> {
    let options = Serve::take(&mut flags)?;
    flags.finish()?;
    let runtime = runtime()?;
    let listener = runtime.block_on(Listener::bind(&options.listen))?;
    end_with_parent(listener.files());
    announce(&listener.address()?)?;
    runtime.block_on(async {
        loop {
            let accepted = match &listener {
                Listener::Tcp(listener) => {
                    let accepted = listener.accept().await;
                    accepted
                        .and_then(|(stream, _)| undelayed(stream))
                        .map(answer)
                }
                Listener::Unix(listener, _) => {
                    listener.accept().await.map(|(stream, _)| answer(stream))
                }
            };
            accepted.map_err(|error| {
                Failure::run(format!("cannot accept: {error}"), "raise `ulimit -n`")
            })?;
        }
    })
}

/// Serves one connection in a task of its own, each request in the way tarpc's guide shows.
fn answer<S: AsyncRead + AsyncWrite + Send + 'static>(stream: S) {
    let transport = serde_transport::new(framed(stream), Bincode::default());
    let config = server::Config {
        pending_response_buffer: IN_FLIGHT_MAX,
    };
    let requests = BaseChannel::new(config, transport).execute(EchoServer.serve());
    tokio::spawn(requests.for_each(|request| async move {
        tokio::spawn(request);
    }));
}

/// Frames long enough for every body that is measured, and writes of up to 16 KiB: with tarpc's
/// default of 8 KiB windows of 64 and more are a few percent slower.
fn framed<S: AsyncRead + AsyncWrite>(stream: S) -> Framed<S, LengthDelimitedCodec> {
    let mut framed = LengthDelimitedCodec::builder()
        .max_frame_length(64 << 20)
        .new_framed(stream);
    framed.set_backpressure_boundary(16 << 10);
    framed
}

fn load(mut flags: Flags) -> Outcome<()> {
    let load = Load::take(&mut flags)?;
    flags.finish()?;
    load.refuse(Mode::Publish, "tarpc answers every call")?;
    limit(load.patience(), Vec::new());
    let tally = runtime()?.block_on(async {
        let mut callers = Vec::with_capacity(load.connections);
        for _ in 0..load.connections {
            callers.push(Client(open(&load.connect).await?));
        }
        drive(&load, &callers).await
    })?;
    Report::of(PROGRAM, &load, &tally, NOTES).print()
}

async fn open(address: &Address) -> Outcome<EchoClient> {
    match address {
        Address::Tcp(address) => Ok(client(tcp(*address).await?)),
        Address::Unix(path) => Ok(client(unix(path).await?)),
    }
}

fn client<S: AsyncRead + AsyncWrite + Send + 'static>(stream: S) -> EchoClient {
    let transport = serde_transport::new(framed(stream), Bincode::default());
    let mut config = client::Config::default();
    config.max_in_flight_requests = IN_FLIGHT_MAX;
    config.pending_request_buffer = IN_FLIGHT_MAX;
    EchoClient::new(config, transport).spawn()
}

#[derive(Clone)]
struct Client(EchoClient);

impl Caller for Client {
    async fn call(&mut self, body: Bytes) -> Result<usize, String> {
        match self.0.echo(context::current(), body).await {
            Ok(reply) => Ok(reply.len()),
            Err(error) => Err(error.to_string()),
        }
    }
}
