//! Connects to a SLIM node as an application: TLS, HTTP/2, the gRPC stream, and the link.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use console::{Exit, Failure};
use h2::client::SendRequest;
use h2::{PingPong, RecvStream, SendStream};
use http::{HeaderMap, Request};
use net::Address;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use slim::{Inbox, Initiator, Item, Link, Message, Random};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::tls::TlsFiles;

const PATH: &str = "/dataplane.proto.v1.DataPlaneService/OpenChannel";

/// Time limit of connecting, including the negotiation of the link.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The default maximum message size of SLIM nodes and libraries.
const MESSAGE_SIZE_MAX: u32 = 4 << 20;

const WINDOW_SIZE: u32 = 4 << 20;
const FRAME_SIZE_MAX: u32 = 4 << 20;

/// The address and the credentials of a SLIM node.
pub struct SlimNode {
    address: Address,
    tls: Option<Arc<ClientConfig>>,
    url: String,
    token: Option<String>,
}

/// An open stream with its link.
pub(super) struct Attached {
    pub(super) link: Link,
    pub(super) send: SendStream<Bytes>,
    pub(super) receive: Receive,
    pub(super) pings: PingPong,
    /// The task that drives the HTTP/2 connection.
    pub(super) driver: Driver,
}

/// The receiving half of a stream.
pub(super) struct Receive {
    stream: RecvStream,
    inbox: Inbox,
}

/// A task that is aborted on drop.
pub(super) struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The reason of a failed or ended stream, as text.
pub(super) type Reason = String;

/// The prefix of reasons when the node requires a token.
pub(super) const UNAUTHENTICATED: &str = "unauthenticated";

/// The prefix of reasons when the TLS handshake fails.
pub(super) const UNTRUSTED: &str = "no TLS";

/// The prefix of reasons when the node closes the connection after the TLS handshake, where it
/// checks client certificates. Its TLS alert is lost if the bridge writes at the same time.
pub(super) const UNCERTIFIED: &str = "the node closed the connection after the TLS handshake";

trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

impl SlimNode {
    /// Creates an address of `http://`, `https://` or `unix://`. The token is sent to the node.
    pub fn new(url: &str, token: Option<String>, tls: &TlsFiles) -> Result<Self, Failure> {
        let usage = |message: String| {
            Failure::new(Exit::Usage, message).hint("write http://, https:// or unix://")
        };
        let native = match url.split_once("://") {
            Some(("http", rest)) => format!("tcp://{}", rest.trim_end_matches('/')),
            Some(("https", rest)) => format!("tls://{}", rest.trim_end_matches('/')),
            Some(("unix", _)) => url.to_owned(),
            _ => return Err(usage(format!("`{url}` is not the address of a SLIM node"))),
        };
        let address: Address = native
            .parse()
            .map_err(|_| usage(format!("`{url}` is not the address of a SLIM node")))?;
        let tls = match address {
            Address::Tls { .. } => Some(tls.client_config()?),
            _ => None,
        };
        Ok(Self {
            address,
            tls,
            url: url.to_owned(),
            token,
        })
    }

    /// Returns the address of the node.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Connects and negotiates a link.
    pub(super) async fn attach(&self) -> Result<Attached, Reason> {
        match tokio::time::timeout(CONNECT_TIMEOUT, self.attach_slowly()).await {
            Ok(attached) => attached,
            Err(_) => Err(format!("no answer within {CONNECT_TIMEOUT:?}")),
        }
    }

    async fn attach_slowly(&self) -> Result<Attached, Reason> {
        let socket = self.connect().await?;
        let handshake = h2::client::Builder::new()
            .initial_window_size(WINDOW_SIZE)
            .initial_connection_window_size(2 * WINDOW_SIZE)
            .max_frame_size(FRAME_SIZE_MAX)
            .handshake(socket);
        let (client, mut connection) = handshake.await.map_err(|error| self.refusal(&error))?;
        let pings = connection
            .ping_pong()
            .ok_or("the connection has no pings")?;
        let driver = Driver(tokio::spawn(async move {
            // The streams report the error.
            let _ = connection.await;
        }));
        let (send, stream) = self.call(client).await?;
        let receive = Receive {
            stream,
            inbox: Inbox::new(MESSAGE_SIZE_MAX),
        };
        negotiate(send, receive, pings, driver).await
    }

    /// Returns the reason of an error on a new connection.
    fn refusal(&self, error: &h2::Error) -> Reason {
        match self.tls.is_some() && error.is_io() {
            true => format!("{UNCERTIFIED}: {error}"),
            false => error.to_string(),
        }
    }

    async fn connect(&self) -> Result<Box<dyn Socket>, Reason> {
        match (&self.address, &self.tls) {
            (Address::Tls { host, port }, Some(config)) => {
                let socket = connect_tcp(host, *port).await?;
                let untrusted = |error: &dyn std::fmt::Display| format!("{UNTRUSTED}: {error}");
                let name = ServerName::try_from(host.clone()).map_err(|error| untrusted(&error))?;
                let connecting = TlsConnector::from(config.clone()).connect(name, socket);
                let socket = connecting.await.map_err(|error| untrusted(&error))?;
                Ok(Box::new(socket))
            }
            (Address::Tcp { host, port }, _) => Ok(Box::new(connect_tcp(host, *port).await?)),
            (Address::Unix { path }, _) => {
                let socket = UnixStream::connect(path).await;
                Ok(Box::new(socket.map_err(|error| error.to_string())?))
            }
            (Address::Tls { .. } | Address::Inproc { .. }, _) => {
                Err("this kind of address is not supported for SLIM nodes".to_owned())
            }
        }
    }

    /// Opens the stream. The node answers before it has read any message.
    async fn call(
        &self,
        client: SendRequest<Bytes>,
    ) -> Result<(SendStream<Bytes>, RecvStream), Reason> {
        let mut client = client.ready().await.map_err(|error| self.refusal(&error))?;
        let place = match &self.address {
            Address::Tls { .. } | Address::Tcp { .. } => self.url.trim_end_matches('/'),
            _ => "http://localhost",
        };
        let mut request = Request::post(format!("{place}{PATH}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(()).map_err(|error| error.to_string())?;
        let sent = client.send_request(request, false);
        let (response, send) = sent.map_err(|error| error.to_string())?;
        let response = response.await.map_err(|error| self.refusal(&error))?;
        match status(response.headers()) {
            Some(reason) => Err(reason),
            None if !response.status().is_success() => Err(format!(
                "not a SLIM node: the answer has HTTP status {}",
                response.status()
            )),
            None => Ok((send, response.into_body())),
        }
    }
}

async fn connect_tcp(host: &str, port: u16) -> Result<TcpStream, Reason> {
    let connecting = async {
        let socket = TcpStream::connect((host, port)).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
    };
    connecting
        .await
        .map_err(|error: std::io::Error| error.to_string())
}

async fn negotiate(
    mut send: SendStream<Bytes>,
    mut receive: Receive,
    pings: PingPong,
    driver: Driver,
) -> Result<Attached, Reason> {
    let link_id = format!("telpher-{:032x}", fastrand::u128(..));
    let initiator = Initiator::new(&link_id, &Random::new()).map_err(|error| error.to_string())?;
    write(&mut send, &initiator.request("telpher-bridge")).await?;
    let reply = receive.next().await?;
    let link = match Message::scan(&reply) {
        Ok(Message::Link(Some(reply))) => initiator.complete(&reply),
        Ok(_) => return Err("the node did not answer the negotiation of the link".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    Ok(Attached {
        link: link.map_err(|error| error.to_string())?,
        send,
        receive,
        pings,
        driver,
    })
}

/// Writes a message, and waits for flow control of the node.
pub(super) async fn write(send: &mut SendStream<Bytes>, message: &[u8]) -> Result<(), Reason> {
    let size = (message.len() as u32).to_be_bytes();
    let mut bytes = Bytes::from([&[0][..], &size, message].concat());
    while !bytes.is_empty() {
        send.reserve_capacity(bytes.len());
        // `poll_capacity` reports only increases, so it is polled only without capacity.
        while send.capacity() == 0 {
            let more = std::future::poll_fn(|cx| send.poll_capacity(cx)).await;
            let more = more.ok_or("the stream has ended")?;
            more.map_err(|error| error.to_string())?;
        }
        let piece = bytes.split_to(send.capacity().min(bytes.len()));
        let sent = send.send_data(piece, false);
        sent.map_err(|error| error.to_string())?;
    }
    Ok(())
}

impl Receive {
    /// Returns the next message. Messages that are too large are skipped.
    pub(super) async fn next(&mut self) -> Result<Bytes, Reason> {
        loop {
            match self.inbox.pull().map_err(|error| error.to_string())? {
                Some(Item::Message(message)) => return Ok(message),
                Some(Item::Oversize(_)) => {}
                None => {
                    let piece = self.piece().await?;
                    self.inbox.feed(piece);
                }
            }
        }
    }

    async fn piece(&mut self) -> Result<Bytes, Reason> {
        let Some(piece) = self.stream.data().await else {
            let trailers = self.stream.trailers().await;
            let trailers = trailers.map_err(|error| error.to_string())?;
            let reason = trailers.as_ref().and_then(status);
            return Err(reason.unwrap_or_else(|| "the node ended the stream".to_owned()));
        };
        let piece = piece.map_err(|error| error.to_string())?;
        let released = self.stream.flow_control().release_capacity(piece.len());
        released.map_err(|error| error.to_string())?;
        Ok(piece)
    }
}

/// Returns the gRPC status, unless it is missing or OK.
fn status(headers: &HeaderMap) -> Option<Reason> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let code = text("grpc-status").filter(|code| *code != "0")?;
    let meaning = match code {
        "7" => "permission denied",
        "14" => "unavailable",
        "16" => UNAUTHENTICATED,
        _ => "refused",
    };
    let message = text("grpc-message").unwrap_or_default();
    Some(format!("{meaning} (status {code}): {message}"))
}
