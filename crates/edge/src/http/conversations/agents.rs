//! Agents that are called when somebody writes: settings, lists, dead letters.

mod deliver;
mod settings;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
pub use deliver::call_agents;
use model::{ErrorCode, Name};
use node::conversations::Pending;
use node::webhooks::{AgentView, DeadView, WebhookTarget, Webhooks};
use serde::Serialize;
use utoipa::ToSchema;

use super::append::{answered, json, json_bytes};
use super::list::InNamespace;
use super::outgoing::{push, push_json};
use super::place::{Conversation, params};
use super::policy::push_policy;
use super::state::push_member;
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::quotas::Client;
use crate::http::time::push_rfc3339;
use crate::http::{Shared, off_thread};
use settings::{AgentSettings, BUSY};

/// Bytes of a body, at most.
const BODY_MAX: usize = 256 << 10;

/// The agent of the path.
pub(crate) struct AgentName(Name);

impl<S: Send + Sync> FromRequestParts<S> for AgentName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let InNamespace(namespace) = InNamespace::from_request_parts(parts, state).await?;
        let params = params(parts, state).await?;
        let found = params.iter().find(|(name, _)| *name == "name");
        let agent = found.map_or("", |(_, value)| value);
        if agent.contains('/') {
            return Err(Problem::invalid("an agent's name has no slash"));
        }
        let name = Name::parse(&format!("{namespace}/{agent}"));
        let name = name.map_err(|error| Problem::invalid(error.to_string()))?;
        Ok(Self(name))
    }
}

fn of(shared: &Shared) -> Result<Webhooks<'_>, Problem> {
    shared.node.webhooks().ok_or_else(|| {
        let detail = "this node calls no agents";
        Problem::of(ErrorCode::Unsupported, detail)
    })
}

/// An agent.
#[derive(ToSchema, Serialize)]
#[schema(as = Agent)]
pub(crate) struct AgentDocument<'a> {
    /// `org/namespace/agent`.
    #[schema(example = "default/default/support")]
    name: &'a str,
    /// Absent for one that is called by its name.
    url: Option<&'a str>,
    /// Whether calls are signed. The secret itself is not shown.
    signed: bool,
    timeout_ms: u64,
    answer_ms: u64,
    debounce_ms: u64,
    max_wait_ms: u64,
    on_busy: &'a str,
    attempts_max: u32,
    pause_ms: u64,
    calls_max: u32,
    /// The names of the headers that are sent. Their values may be secret: they are not shown.
    headers: Vec<&'a str>,
    /// Conversations that wait for it or that it is called for.
    waiting: usize,
    /// Calls in flight.
    calling: u32,
    /// Dead letters.
    dead: usize,
}

impl<'a> AgentDocument<'a> {
    fn new(view: &'a AgentView) -> Self {
        let (settings, schedule) = (&view.settings, &view.schedule);
        let word = BUSY.iter().find(|(_, it)| *it == schedule.on_busy);
        Self {
            name: &view.name,
            url: match &settings.target {
                WebhookTarget::Url(url) => Some(url),
                WebhookTarget::Name(_) => None,
            },
            signed: !settings.secret.is_empty(),
            timeout_ms: settings.timeout_ms,
            answer_ms: settings.answer_ms,
            debounce_ms: schedule.debounce_ms,
            max_wait_ms: schedule.max_wait_ms,
            on_busy: word.map_or("", |(word, _)| word),
            attempts_max: schedule.attempts_max,
            pause_ms: schedule.pause_ms,
            calls_max: schedule.calls_max,
            headers: settings
                .headers
                .iter()
                .map(|(name, _)| name.as_str())
                .collect(),
            waiting: view.waiting,
            calling: view.calling,
            dead: view.dead,
        }
    }
}

/// The agents of a namespace.
#[derive(Serialize, ToSchema)]
#[schema(as = Agents)]
pub(crate) struct AgentsDocument<'a> {
    agents: Vec<AgentDocument<'a>>,
}

/// The dead letters of an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetters)]
pub(crate) struct DeadLettersDocument {
    dead: Vec<DeadDocument>,
}

fn push_agent(out: &mut Vec<u8>, view: &AgentView) {
    push_json(out, &AgentDocument::new(view));
    if let Some(policy) = &view.settings.context {
        // The end of the object moves behind one more member.
        out.pop();
        push_member(out, "context");
        push_policy(out, policy);
        push(out, b"}");
    }
}

/// The agents of a namespace that are called when somebody writes.
#[utoipa::path(
    get, path = "/webhooks", tag = "agents", operation_id = "list_agents",
    responses((status = 200, description = "The agents", body = AgentsDocument<'static>))
)]
pub(super) async fn list(
    State(shared): State<Shared>,
    InNamespace(namespace): InNamespace,
) -> Result<Response, Problem> {
    off_thread(move || {
        let mut out = b"{\"agents\":[".to_vec();
        for (index, view) in of(&shared)?.list(&namespace)?.iter().enumerate() {
            if index > 0 {
                push(&mut out, b",");
            }
            push_agent(&mut out, view);
        }
        push(&mut out, b"]}");
        Ok(json_bytes(out))
    })
    .await
}

/// An agent, and how it stands.
#[utoipa::path(
    get, path = "/agents/{name}", tag = "agents", operation_id = "get_agent",
    params(("name" = String, Path, description = "The agent")),
    responses(
        (status = 200, description = "It", body = AgentDocument<'static>),
        (status = 404, description = "There is no such agent", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn get(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
) -> Result<Response, Problem> {
    off_thread(move || {
        let mut out = Vec::new();
        push_agent(&mut out, &of(&shared)?.get(&name)?);
        Ok(json_bytes(out))
    })
    .await
}

/// Make an agent, or have it reached and called otherwise.
///
/// It is called when somebody else writes in a conversation whose `agent` is its name.
#[utoipa::path(
    put, path = "/agents/{name}", tag = "agents", operation_id = "put_agent",
    params(("name" = String, Path, description = "The agent")),
    request_body = AgentSettings,
    responses(
        (status = 200, description = "Changed", body = AgentDocument<'static>),
        (status = 201, description = "Made", body = AgentDocument<'static>),
        (status = 400, description = "Something in the request is wrong, or calls may not go there", body = crate::http::openapi::ProblemDocument),
        (status = 403, description = "The token may not use the agent's name", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn put(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    client.check(&name)?;
    let body = body::read_json(&headers, body, BODY_MAX).await?;
    let document: AgentSettings = body::parse(&body)?;
    let putting = {
        let (shared, name) = (shared.clone(), name.clone());
        move || put_document(of(&shared)?, &name, document)
    };
    let is_new = answered(off_thread(putting).await?).await?;
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let mut out = Vec::new();
    push_agent(&mut out, &of(&shared)?.get(&name)?);
    Ok((status, json_bytes(out)).into_response())
}

/// What is not said stays as it is.
fn put_document(
    webhooks: Webhooks<'_>,
    name: &Name,
    document: AgentSettings,
) -> Result<Pending<bool>, Problem> {
    let before = match webhooks.get(name) {
        Ok(view) => Some(view),
        Err(refusal) if refusal.code == ErrorCode::NotFound => None,
        Err(refusal) => return Err(refusal.into()),
    };
    let known = before.as_ref().map(|it| it.schedule);
    let schedule = document.schedule(known.unwrap_or_default())?;
    let settings = document.settings(name, before.as_ref().map(|it| &*it.settings))?;
    Ok(webhooks.put(name, settings, schedule)?)
}

/// Call an agent no more; what it is leaves the disk.
#[utoipa::path(
    delete, path = "/agents/{name}", tag = "agents", operation_id = "delete_agent",
    params(("name" = String, Path, description = "The agent")),
    responses(
        (status = 204, description = "It is no more"),
        (status = 403, description = "The token may not use the agent's name", body = crate::http::openapi::ProblemDocument),
        (status = 404, description = "There is no such agent", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn delete(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
    client: Client,
) -> Result<Response, Problem> {
    client.check(&name)?;
    let deleting = move || Ok(of(&shared)?.delete(&name)?);
    answered(off_thread(deleting).await?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What an agent was not able to answer.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(crate) struct DeadDocument {
    /// `org/namespace/id`.
    #[schema(example = "default/default/support-42")]
    conversation: String,
    /// The first message that is not answered.
    from_seq: u64,
    /// The last one.
    to_seq: u64,
    /// Calls that were made.
    attempts: u32,
    /// The HTTP status of the last answer; 0 for none.
    status: u16,
    /// Why the last call failed; absent if that was before the node was started.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// When it was given up (RFC 3339).
    at: String,
}

/// What an agent was not able to answer.
#[utoipa::path(
    get, path = "/agents/{name}/dead", tag = "agents", operation_id = "list_dead_letters",
    params(("name" = String, Path, description = "The agent")),
    responses(
        (status = 200, description = "Its dead letters", body = DeadLettersDocument),
        (status = 404, description = "There is no such agent", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn dead(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
) -> Result<Response, Problem> {
    off_thread(move || {
        let dead = of(&shared)?.dead(&name)?;
        Ok(json(&DeadLettersDocument {
            dead: dead.into_iter().map(dead_document).collect(),
        }))
    })
    .await
}

fn dead_document(view: DeadView) -> DeadDocument {
    let DeadView {
        conversation,
        letter,
        reason,
    } = view;
    let mut at = Vec::new();
    push_rfc3339(&mut at, letter.at_ms);
    DeadDocument {
        conversation,
        from_seq: letter.from_seq,
        to_seq: letter.to_seq,
        attempts: letter.attempts,
        status: letter.status,
        reason,
        at: String::from_utf8_lossy(&at).into_owned(),
    }
}

/// Call an agent again for what it was not able to answer.
#[utoipa::path(
    post, path = "/agents/{name}/dead/{id}/retry", tag = "agents", operation_id = "retry_dead_letter",
    params(
        ("name" = String, Path, description = "The agent"),
        ("id" = String, Path, description = "The conversation"),
    ),
    responses(
        (status = 202, description = "It waits again"),
        (status = 403, description = "The token may not use the agent's name", body = crate::http::openapi::ProblemDocument),
        (status = 404, description = "There is no such dead letter", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn retry(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
    Conversation(conversation): Conversation,
    client: Client,
) -> Result<Response, Problem> {
    client.check(&name)?;
    off_thread(move || Ok(of(&shared)?.retry(&name, &conversation)?)).await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// List a dead letter no more.
#[utoipa::path(
    delete, path = "/agents/{name}/dead/{id}", tag = "agents", operation_id = "drop_dead_letter",
    params(
        ("name" = String, Path, description = "The agent"),
        ("id" = String, Path, description = "The conversation"),
    ),
    responses(
        (status = 204, description = "It is not listed any more"),
        (status = 403, description = "The token may not use the agent's name", body = crate::http::openapi::ProblemDocument),
        (status = 404, description = "There is no such dead letter", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn discard(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
    Conversation(conversation): Conversation,
    client: Client,
) -> Result<Response, Problem> {
    client.check(&name)?;
    off_thread(move || Ok(of(&shared)?.discard(&name, &conversation)?)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
