//! The handshake: a client's HELLO, and the WELCOME.

use std::sync::Arc;

use access::Principal;
use door::Refused;
use messaging::{Facts, Outlet};
use model::{ErrorCode, Failure, Name};
use net::Stream;
use platform::Counter;
use wire::{Correlation, FEATURES, Header, Hello, Inbox, Item, Kind, Role, Welcome};

use super::outlet::NativeOutlet;
use super::quota::Owner;
use super::session::Session;
use super::{Door, Origin};

/// The largest HELLO: a name, a token and some numbers.
const HELLO_SIZE_MAX: u32 = 4096;

/// The reason why a handshake failed.
pub(super) enum Failed {
    /// The client disconnected, or there is nothing to tell it.
    Silent,
    /// The client was sent an error.
    Refused {
        /// The error message.
        message: String,
    },
}

/// Reads the HELLO, checks it and answers.
pub(super) async fn run(door: &Door, stream: Stream, origin: Origin) -> Result<Session, Failed> {
    let outlet = Arc::new(NativeOutlet::new(
        stream.sink.clone(),
        door.options.queue_size_max,
        door.node.clone(),
    ));
    let mut source = stream.source;
    let mut inbox = Inbox::new(HELLO_SIZE_MAX);
    let deadline = tokio::time::Instant::now() + door.options.handshake_timeout;
    loop {
        let mut chunk = [0; 4096];
        let reading = std::future::poll_fn(|cx| source.poll_read(cx, &mut chunk));
        let count = match tokio::time::timeout_at(deadline, reading).await {
            Ok(Ok(0)) | Ok(Err(_)) => return Err(Failed::Silent),
            Ok(Ok(count)) => count,
            Err(_) => {
                let message = "no HELLO arrived in time".to_owned();
                return Err(refuse(door, &outlet, ErrorCode::Protocol, message));
            }
        };
        // Only the HELLO is read here. Bytes after it in the same chunk belong to the session,
        // whose limits are not known before.
        let Some((hello, used)) = first_frame(&mut inbox, &chunk[..count]) else {
            continue;
        };
        let (header, payload) = match hello {
            Ok(frame) => frame,
            Err(message) => return Err(refuse(door, &outlet, ErrorCode::Protocol, message)),
        };
        let rest = chunk[used..count].to_vec();
        let (connection, owner, keepalive_ms) =
            match admit(door, &outlet, header, &payload, &stream.peer, origin) {
                Ok(admitted) => admitted,
                Err((code, message)) => return Err(refuse(door, &outlet, code, message)),
            };
        outlet.outbox.flush();
        let session = Session::new(door, source, outlet, connection, owner, keepalive_ms, rest);
        return Ok(session);
    }
}

type FirstFrame = Result<(Header, Vec<u8>), String>;

/// Returns the first whole frame, and how many bytes of `chunk` it used.
fn first_frame(inbox: &mut Inbox, chunk: &[u8]) -> Option<(FirstFrame, usize)> {
    // It reads byte by byte: a handshake is short, and no byte after the frame may be consumed.
    for (index, byte) in chunk.iter().enumerate() {
        let mut frames = inbox.feed(std::slice::from_ref(byte));
        let found = match frames.next() {
            None => continue,
            Some(Item::Frame(header, payload)) => Ok((header, payload.to_vec())),
            Some(Item::Oversize { header, .. }) => Err(match header.kind {
                Kind::HELLO => format!("the HELLO is too large (limit {HELLO_SIZE_MAX} bytes)"),
                _ => "this is not the Telpher protocol".to_owned(),
            }),
        };
        return Some((found, index + 1));
    }
    None
}

fn admit(
    door: &Door,
    outlet: &Arc<NativeOutlet>,
    header: Header,
    payload: &[u8],
    remote: &str,
    origin: Origin,
) -> Result<(messaging::Connection, Owner, u32), (ErrorCode, String)> {
    if header.kind != Kind::HELLO {
        let message = format!("the first frame is {:?}, not HELLO", header.kind);
        return Err((ErrorCode::Protocol, message));
    }
    let hello = Hello::decode(payload).map_err(|error| (ErrorCode::Protocol, error.to_string()))?;
    let version = hello.negotiate().ok_or_else(|| {
        let (min, max) = (hello.version_min, hello.version_max);
        let (ours_min, ours_max) = (wire::VERSION_MIN, wire::VERSION);
        let message = format!(
            "protocol versions {min} to {max} are not supported; this node supports {ours_min} to {ours_max}"
        );
        (ErrorCode::Unsupported, message)
    })?;
    let name = match hello.name {
        "" => None,
        text => Some(Name::parse(text).map_err(|e| (ErrorCode::InvalidArgument, e.to_string()))?),
    };
    let (principal, token) = match origin {
        Origin::System => (Principal::node(), None),
        Origin::Network => {
            let pass = door.gate.admit(hello.token);
            let pass = pass.map_err(|refused| refusal(door, refused))?;
            (pass.principal().clone(), pass.token().cloned())
        }
    };
    let owner = Owner {
        principal: token.as_ref().map(|token| token.name.clone()),
        is_admin: principal.role() == door::Role::Admin,
        has_long_holds: hello.features & wire::LONG_HOLDS != 0,
    };
    let principal = match &name {
        None => principal,
        Some(name) => principal.claim(name).map_err(|forbidden| {
            let message = forbidden.to_string();
            (ErrorCode::Denied, message)
        })?,
    };
    let facts = Facts {
        name,
        principal,
        remote: remote.to_owned(),
        door: "native",
        token,
        user: None,
        trusted: origin == Origin::System,
        calls_max: hello.window.calls_max,
        credit_messages: hello.window.credit_messages,
        credit_bytes: hello.window.credit_bytes,
    };
    let welcome = |id: routing::ConnectionId| {
        let welcome = Welcome {
            version,
            role: Role::Node,
            features: hello.features & FEATURES,
            window: door.window(),
            connection: id.0,
            software: concat!("telpher ", env!("CARGO_PKG_VERSION")),
        };
        outlet.outbox.push(|out| welcome.encode(out));
        Outlet::Inbox(outlet.clone())
    };
    let connection = door
        .node
        .messaging()
        .connect(facts, welcome)
        .map_err(|refusal| (ErrorCode::Unavailable, refusal.to_string()))?;
    Ok((connection, owner, hello.window.keepalive_ms))
}

fn refusal(door: &Door, refused: Refused) -> (ErrorCode, String) {
    door.node.counters().count(Counter::Unauthenticated);
    let code = match refused {
        Refused::Missing | Refused::Unknown => ErrorCode::Unauthenticated,
        Refused::Broken => ErrorCode::Internal,
    };
    (code, refused.to_string())
}

/// Sends the error, and closes the connection.
fn refuse(door: &Door, outlet: &NativeOutlet, code: ErrorCode, message: String) -> Failed {
    if code == ErrorCode::Protocol {
        door.node.counters().count(Counter::ProtocolErrors);
    }
    door.node.counters().count_failure(code);
    outlet.outbox.push(|out| {
        wire::encode_failure(&Failure::new(code, &message), Correlation::NONE, out);
    });
    outlet.outbox.flush();
    outlet.outbox.finish();
    Failed::Refused { message }
}
