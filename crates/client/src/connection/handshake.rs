//! Handshake: HELLO from the connecting side, WELCOME or ERROR from the accepting side.
//!
//! The first frame is read to its last byte and no further, so that all later bytes go to the
//! connection's task.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use model::{ErrorCode, Failure};
use net::{Address, Source, Stream};
use tokio::time::Instant;
use wire::{
    Correlation, FEATURES, HEADER_SIZE, Header, Hello, Kind, Role, VERSION, VERSION_MIN, Welcome,
    Window,
};

use crate::ConnectError;
use crate::connection::buffers;
use crate::connection::writer::Writer;
use crate::options::Options;
use crate::state::link::Peer;

/// Time for the peer to answer the first frame.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum payload of a first frame in bytes: a token and a name of maximum size, and the numbers.
pub(crate) const FIRST_FRAME_SIZE_MAX: u32 = 132 << 10;

/// Bytes of a first frame read at a time. The buffer is part of the connection's task and exists as
/// long as the task.
const STEP_SIZE: usize = 256;

/// A connection after the handshake.
pub(crate) struct EstablishedConnection {
    pub(crate) source: Box<dyn Source>,
    pub(crate) writer: Writer,
    pub(crate) peer: Peer,
}

/// Connects to `address` and performs the handshake.
pub(crate) async fn connect(
    options: &Options,
    address: &Address,
) -> Result<EstablishedConnection, ConnectError> {
    let text = address.to_string();
    let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
    let connecting = async {
        let stream = match &options.connector {
            Some(connector) => connector(address).await,
            None => net::connect(address, options.tls.clone()).await,
        };
        let stream = stream.map_err(|cause| ConnectError::Io {
            address: text.clone(),
            cause,
        })?;
        exchange_hello(options, &text, stream).await
    };
    match tokio::time::timeout_at(deadline, connecting).await {
        Ok(outcome) => outcome,
        Err(_) => Err(ConnectError::Timeout {
            address: text,
            timeout: HANDSHAKE_TIMEOUT,
        }),
    }
}

/// Sends HELLO and checks the answer.
async fn exchange_hello(
    options: &Options,
    address: &str,
    stream: Stream,
) -> Result<EstablishedConnection, ConnectError> {
    let io_error = |cause| ConnectError::Io {
        address: address.to_owned(),
        cause,
    };
    let hello = Hello {
        version_min: VERSION_MIN,
        version_max: VERSION,
        features: FEATURES,
        window: options.window,
        token: &options.token,
        name: &options.name,
    };
    let mut out = Vec::new();
    hello.encode(&mut out);
    let mut source = stream.source;
    let mut writer = Writer::new(stream.sink);
    writer.load(out);
    poll_fn(|cx| writer.poll(cx)).await.map_err(io_error)?;
    let (header, payload) = match read_frame(&mut *source).await {
        Ok(frame) => frame,
        Err(FirstFrameError::Io(cause)) => return Err(io_error(cause)),
        Err(FirstFrameError::Oversize) => {
            return Err(protocol(
                address,
                "the first frame is larger than {FIRST_FRAME_SIZE_MAX} bytes",
            ));
        }
    };
    let peer = check_welcome(address, header, &payload)?;
    Ok(EstablishedConnection {
        source,
        writer,
        peer,
    })
}

/// Checks the answer to a HELLO.
pub(crate) fn check_welcome(
    address: &str,
    header: Header,
    payload: &[u8],
) -> Result<Peer, ConnectError> {
    match header.kind {
        Kind::WELCOME => {
            let welcome = Welcome::decode(payload).map_err(|error| protocol(address, error))?;
            if !(VERSION_MIN..=VERSION).contains(&welcome.version) {
                let cause = format!(
                    "the peer chose version {}, supported are {VERSION_MIN} to {VERSION}",
                    welcome.version
                );
                return Err(protocol(address, cause));
            }
            Ok(Peer {
                role: welcome.role,
                window: welcome.window,
                software: welcome.software.to_owned(),
                address: address.to_owned(),
            })
        }
        Kind::ERROR => {
            let failure =
                wire::decode_failure(payload).map_err(|error| protocol(address, error))?;
            Err(ConnectError::Refused {
                address: address.to_owned(),
                code: failure.code,
                message: failure.message.to_owned(),
            })
        }
        kind => Err(protocol(
            address,
            format!("the first frame is {kind:?}, not WELCOME"),
        )),
    }
}

fn protocol(address: &str, cause: impl ToString) -> ConnectError {
    ConnectError::Protocol {
        address: address.to_owned(),
        cause: cause.to_string(),
    }
}

/// A connection after the handshake, on the accepting side.
pub(crate) struct AcceptedConnection {
    pub(crate) source: Box<dyn Source>,
    pub(crate) writer: Writer,
    /// Limits of the client.
    pub(crate) window: Window,
}

/// Contents of WELCOME, and the conditions for accepting a client.
pub(crate) struct AcceptOptions<'a> {
    pub(crate) window: Window,
    pub(crate) connection: u64,
    pub(crate) admit: Option<&'a (dyn Fn(&str) -> bool + Send + Sync)>,
    pub(crate) timeout: Duration,
}

/// Waits for a HELLO and answers it. Returns `None` if the connection failed or was refused; a
/// refused client got the error.
pub(crate) async fn accept(host: AcceptOptions<'_>, stream: Stream) -> Option<AcceptedConnection> {
    let mut source = stream.source;
    let mut writer = Writer::new(stream.sink);
    let mut out = Vec::new();
    let verdict = match tokio::time::timeout(host.timeout, read_frame(&mut *source)).await {
        Ok(Ok((header, payload))) => check_hello(&host, header, &payload, &mut out),
        Ok(Err(FirstFrameError::Oversize)) => Err((
            ErrorCode::Protocol,
            "this is not the Telpher protocol".to_owned(),
        )),
        Ok(Err(FirstFrameError::Io(_))) => return None,
        Err(_) => Err((
            ErrorCode::Protocol,
            format!("no HELLO arrived within {:?}", host.timeout),
        )),
    };
    if let Err((code, message)) = &verdict {
        let failure = Failure::new(*code, message);
        wire::encode_failure(&failure, Correlation::NONE, &mut out);
    }
    writer.load(out);
    let writing = poll_fn(|cx| writer.poll(cx));
    let written = tokio::time::timeout(host.timeout, writing).await;
    match (verdict, written) {
        (Ok(window), Ok(Ok(()))) => Some(AcceptedConnection {
            source,
            writer,
            window,
        }),
        (Err(_), Ok(Ok(()))) => {
            linger(&mut *source, &writer).await;
            None
        }
        _ => None,
    }
}

fn check_hello(
    host: &AcceptOptions<'_>,
    header: Header,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<Window, (ErrorCode, String)> {
    if header.kind != Kind::HELLO {
        let message = format!("the first frame is {:?}, not HELLO", header.kind);
        return Err((ErrorCode::Protocol, message));
    }
    let hello = Hello::decode(payload).map_err(|error| (ErrorCode::Protocol, error.to_string()))?;
    let Some(version) = hello.negotiate() else {
        let message = format!(
            "versions {} to {} are not supported, only {VERSION_MIN} to {VERSION}",
            hello.version_min, hello.version_max
        );
        return Err((ErrorCode::Unsupported, message));
    };
    if host.admit.is_some_and(|admit| !admit(hello.token)) {
        let message = match hello.token {
            "" => "a token is required",
            _ => "the token is not valid",
        };
        return Err((ErrorCode::Unauthenticated, message.to_owned()));
    }
    let welcome = Welcome {
        version,
        role: Role::Server,
        features: hello.features & FEATURES,
        window: host.window,
        connection: host.connection,
        software: concat!("telpher-client ", env!("CARGO_PKG_VERSION")),
    };
    welcome.encode(out);
    Ok(hello.window)
}

/// Time for a refused peer to read its error.
const LINGER: Duration = Duration::from_secs(1);

/// Maximum number of bytes read and ignored during that time.
const LINGER_SIZE_MAX: usize = 64 << 20;

/// Shuts down the sending direction and ignores incoming bytes, so that the peer can read the
/// error. Closing at once would discard it.
pub(crate) async fn linger(source: &mut dyn Source, writer: &Writer) {
    writer.finish();
    let draining = async {
        let mut drained = 0;
        while drained < LINGER_SIZE_MAX {
            let read = poll_fn(|cx| {
                let mut chunk = buffers::take_chunk();
                let read = source.poll_read(cx, &mut chunk);
                buffers::give_chunk(chunk);
                read
            });
            match read.await {
                Ok(0) | Err(_) => break,
                Ok(count) => drained += count,
            }
        }
    };
    // A peer that still sends after this time is not reading.
    let _ = tokio::time::timeout(LINGER, draining).await;
}

/// Failure to read a first frame.
enum FirstFrameError {
    Io(io::Error),
    Oversize,
}

async fn read_frame(source: &mut dyn Source) -> Result<(Header, Vec<u8>), FirstFrameError> {
    let mut head = Vec::new();
    read_exact(source, HEADER_SIZE, &mut head).await?;
    let Some(head) = head.first_chunk() else {
        return Err(FirstFrameError::Io(io::ErrorKind::UnexpectedEof.into()));
    };
    let header = Header::decode(head);
    if header.length > FIRST_FRAME_SIZE_MAX {
        return Err(FirstFrameError::Oversize);
    }
    let mut payload = Vec::new();
    read_exact(source, header.length as usize, &mut payload).await?;
    Ok((header, payload))
}

async fn read_exact(
    source: &mut dyn Source,
    size: usize,
    into: &mut Vec<u8>,
) -> Result<(), FirstFrameError> {
    let mut step = [0; STEP_SIZE];
    while into.len() < size {
        let missing = (size - into.len()).min(STEP_SIZE);
        let read = poll_fn(|cx| source.poll_read(cx, &mut step[..missing])).await;
        match read.map_err(FirstFrameError::Io)? {
            0 => return Err(FirstFrameError::Io(io::ErrorKind::UnexpectedEof.into())),
            count => into.extend_from_slice(&step[..count]),
        }
    }
    Ok(())
}
