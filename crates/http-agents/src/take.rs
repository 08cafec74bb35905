//! Takes: messages of a mailbox, for the time of a lease.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use http_api::{Client, Problem, ProblemDocument, Shared, off_thread, query};
use messaging::mailboxes::{LeaseError, Mailboxes, TakeOptions, TakenMessage, Taking};
use model::{ErrorCode, Name};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::metadata;
use crate::place::Agent;
use crate::problem::of_lease;

/// Most messages of one take.
const MESSAGES_MAX: usize = 256;

/// Largest bodies and metadata of one take in bytes, unless one message is larger.
const BYTES_MAX: usize = 4 << 20;

/// Longest wait for messages.
const WAIT_MS_MAX: u32 = 60_000;

/// Shortest wait while messages are read from the disk.
const READ_WAIT_MS: u32 = 1_000;

/// Longest lease: 12 hours.
const LEASE_MS_MAX: u32 = 12 * 3_600_000;

/// The instance of clients that name none.
const INSTANCE: &str = "http";

/// The options of a take.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TakeQuery {
    /// Most messages, 1 to 256; default 1.
    #[param(minimum = 1, maximum = 256)]
    max: Option<usize>,
    /// Longest time to wait for the first message in milliseconds, up to 60000; default 0.
    #[param(maximum = 60000)]
    wait_ms: Option<u32>,
    /// Time in milliseconds in which the messages have to be answered, up to 43200000; default
    /// `mailbox.ack_timeout`.
    #[param(minimum = 1, maximum = 43200000)]
    lease_ms: Option<u32>,
    /// Name of the worker as an instance of the agent; default `http`. As long as an instance has
    /// unanswered messages of a sender, later ones of that sender go to no other instance.
    instance: Option<String>,
}

/// Messages that were taken.
#[derive(Serialize, ToSchema)]
#[schema(as = TakenMessages)]
pub(crate) struct TakenDocument {
    /// At least one, unless none arrived in time.
    messages: Vec<TakenMessageDocument>,
}

/// A message that was taken.
#[derive(Serialize, ToSchema)]
#[schema(as = TakenMessage)]
pub(crate) struct TakenMessageDocument {
    /// Id of the lease, with which the message is answered.
    #[schema(example = "7-9f86d081884c7d65")]
    lease: String,
    /// End of the lease, in milliseconds since 1970-01-01 UTC.
    lease_until_ms: u64,
    /// Offset in the mailbox.
    offset: u64,
    /// Number of the delivery, from 1.
    delivery: u32,
    /// Name of the sender.
    sender: String,
    /// Method; absent for none.
    method: Option<String>,
    /// Time of the write, in milliseconds since 1970-01-01 UTC.
    written_ms: u64,
    /// Time of expiry, in milliseconds since 1970-01-01 UTC.
    expires_ms: u64,
    /// Metadata entries, such as `content-type`.
    metadata: Option<std::collections::BTreeMap<String, String>>,
    /// Metadata entries whose values are not UTF-8, in base64.
    metadata_base64: Option<std::collections::BTreeMap<String, String>>,
    /// Body, if it is UTF-8.
    body: Option<String>,
    /// Body in base64, if it is not UTF-8.
    body_base64: Option<String>,
}

/// Take messages of an agent's mailbox, for the time of a lease.
///
/// Each message has to be acknowledged (`ack`), returned (`nack`) or renewed (`renew`) by its lease.
/// A message whose lease runs out is delivered again, to this or another worker. Native instances
/// and clients that take messages may share a mailbox. Messages that arrive when the client has
/// disconnected are delivered again at once.
#[utoipa::path(
    post, path = "/agents/{name}/mailbox/take", tag = "messaging", operation_id = "take_messages",
    params(
        ("name" = String, Path, description = "Name of the agent"),
        TakeQuery,
    ),
    responses(
        (status = 200, description = "The messages; none if none arrived in time", body = TakenDocument),
        (status = 403, description = "The token may not use the agent's name, or the client is halted", body = ProblemDocument),
    )
)]
pub(super) async fn take(
    State(shared): State<Shared>,
    agent: Agent,
    client: Client,
    uri: Uri,
) -> Result<Response, Problem> {
    client.check(&agent.name)?;
    client.check_halt(&shared.node)?;
    let query: TakeQuery = query(&uri)?;
    let mailboxes = mailboxes(&shared)?;
    let wait_ms = query.wait_ms.unwrap_or_default();
    let default_ms = u32::try_from(mailboxes.ack_timeout().as_millis()).unwrap_or(LEASE_MS_MAX);
    let lease_ms = query.lease_ms.unwrap_or(default_ms.min(LEASE_MS_MAX));
    let max = query.max.unwrap_or(1);
    check("max", max as u64, 1, MESSAGES_MAX as u64)?;
    check("wait_ms", wait_ms.into(), 0, WAIT_MS_MAX.into())?;
    check_lease(lease_ms)?;
    let request = TakeRequest {
        name: agent.name,
        instance: query.instance.unwrap_or_else(|| INSTANCE.to_owned()),
        max,
        lease: Duration::from_millis(lease_ms.into()),
    };
    let mut taking = begin(mailboxes.clone(), request).await?;
    // A message that is being read from the disk is there already.
    let wait_ms = match taking.is_reading() {
        true => wait_ms.max(READ_WAIT_MS),
        false => wait_ms,
    };
    let arriving = poll_fn(|cx| taking.poll_messages(cx.waker()));
    let waiting = tokio::time::sleep(Duration::from_millis(wait_ms.into()));
    let messages = tokio::select! {
        biased;
        messages = arriving => messages,
        () = waiting => taking.finish(),
        () = shared.connections.draining() => taking.finish(),
    };
    Ok(answer(messages))
}

/// Returns the mailboxes of the node, or an error if it has none.
pub(crate) fn mailboxes(shared: &Shared) -> Result<&Arc<Mailboxes>, Problem> {
    shared.node.messaging().mailboxes().ok_or_else(|| {
        let detail = "this node has no storage, so it has no mailboxes";
        Problem::of(ErrorCode::Unsupported, detail)
    })
}

/// Checks the length of a lease.
pub(crate) fn check_lease(lease_ms: u32) -> Result<(), Problem> {
    check("lease_ms", lease_ms.into(), 1, LEASE_MS_MAX.into())
}

fn check(option: &str, value: u64, min: u64, max: u64) -> Result<(), Problem> {
    match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(Problem::invalid(format!(
            "`{option}` is {value}: use {min} to {max}"
        ))),
    }
}

/// The request of messages.
struct TakeRequest {
    name: Name,
    instance: String,
    max: usize,
    lease: Duration,
}

impl TakeRequest {
    fn options(&self) -> TakeOptions<'_> {
        TakeOptions {
            instance: &self.instance,
            messages_max: self.max,
            bytes_max: BYTES_MAX,
            lease: self.lease,
        }
    }
}

/// Begins to take messages, off the thread if the mailbox has to be read from the disk.
async fn begin(mailboxes: Arc<Mailboxes>, request: TakeRequest) -> Result<Taking, Problem> {
    let at_once = mailboxes.take_at_once(&request.name, request.options());
    if let Some(taking) = at_once.map_err(of_lease)? {
        return Ok(taking);
    }
    let take = move || {
        let taking: Result<Taking, LeaseError> = mailboxes.take(&request.name, request.options());
        taking.map_err(of_lease)
    };
    off_thread(take).await
}

fn answer(messages: Vec<TakenMessage>) -> Response {
    let messages: Vec<_> = messages.into_iter().map(message).collect();
    let mut object = Map::new();
    object.insert("messages".to_owned(), messages.into());
    let body = Body::from(Value::Object(object).to_string());
    let head = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (head, body).into_response()
}

fn message(message: TakenMessage) -> Value {
    let mut object = Map::new();
    let delivery = message.delivery;
    for (member, value) in [
        ("lease", Value::from(message.lease.to_string())),
        ("lease_until_ms", message.lease_until_ms.into()),
        ("offset", delivery.offset.into()),
        ("delivery", delivery.delivery.into()),
        ("sender", message.sender.into()),
        ("written_ms", delivery.written_ms.into()),
        ("expires_ms", message.expires_ms.into()),
    ] {
        object.insert(member.to_owned(), value);
    }
    if !message.method.is_empty() {
        object.insert("method".to_owned(), (*message.method).into());
    }
    metadata::insert(&mut object, &message.metadata, &message.body);
    Value::Object(object)
}
