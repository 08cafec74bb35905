//! Agents that are called for new messages: settings, lists and dead letters.

mod deliver;
mod settings;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
pub use deliver::call_agents;
use http_api::Client;
use http_api::Problem;
use http_api::body;
use http_api::time::push_rfc3339;
use http_api::{Shared, off_thread, within_write_limit};
use model::{ErrorCode, Name};
use platform::Pending;
use serde::Serialize;
use utoipa::ToSchema;
use webhooks::{AgentView, DeadView, WebhookError, WebhookTarget, Webhooks};

use super::append::{json, json_bytes};
use super::list::InNamespace;
use super::outgoing::{push, push_json, push_member};
use super::place::{Conversation, params};
use super::policy::push_policy;
use settings::{AgentSettings, BUSY};

/// Largest request body, in bytes.
const BODY_MAX: usize = 256 << 10;

/// The agent named in the path.
pub(crate) struct AgentName(Name);

impl<S: Send + Sync> FromRequestParts<S> for AgentName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let InNamespace(namespace) = InNamespace::from_request_parts(parts, state).await?;
        let params = params(parts, state).await?;
        let found = params.iter().find(|(name, _)| *name == "name");
        let agent = found.map_or("", |(_, value)| value);
        if agent.contains('/') {
            return Err(Problem::invalid("an agent's name must not contain a slash"));
        }
        let name = Name::parse(&format!("{namespace}/{agent}"));
        let name = name.map_err(|error| Problem::invalid(error.to_string()))?;
        Ok(Self(name))
    }
}

fn of(shared: &Shared) -> Result<&Webhooks, Problem> {
    shared.node.webhooks().ok_or_else(|| {
        let detail = "this node does not call agents";
        Problem::of(ErrorCode::Unsupported, detail)
    })
}

fn problem(error: WebhookError) -> Problem {
    Problem::of(error.code(), error.to_string())
}

/// An agent with its settings and state.
#[derive(ToSchema, Serialize)]
#[schema(as = Agent)]
pub(crate) struct AgentDocument<'a> {
    /// `org/namespace/agent`.
    #[schema(example = "default/default/support")]
    name: &'a str,
    /// Absent for an agent that is called by its name.
    url: Option<&'a str>,
    /// True if calls are signed. The secret itself is not shown.
    signed: bool,
    timeout_ms: u64,
    answer_ms: u64,
    debounce_ms: u64,
    max_wait_ms: u64,
    on_busy: &'a str,
    attempts_max: u32,
    pause_ms: u64,
    calls_max: u32,
    /// Names of the headers sent with each call. Values may be secret and are not shown.
    headers: Vec<&'a str>,
    /// Conversations that wait for a call, or for which a call is in flight.
    waiting: usize,
    /// Calls in flight.
    calling: u32,
    /// Number of dead letters.
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
        // Replaces the closing brace by one more member.
        out.pop();
        push_member(out, "context");
        push_policy(out, policy);
        push(out, b"}");
    }
}

/// List the agents of a namespace.
#[utoipa::path(
    get, path = "/webhooks", tag = "agents", operation_id = "list_agents",
    responses((status = 200, description = "Agents of the namespace", body = AgentsDocument<'static>))
)]
pub(super) async fn list(
    State(shared): State<Shared>,
    InNamespace(namespace): InNamespace,
) -> Result<Response, Problem> {
    off_thread(move || {
        let agents = of(&shared)?.list(&namespace).map_err(problem)?;
        let mut out = b"{\"agents\":[".to_vec();
        for (index, view) in agents.iter().enumerate() {
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

/// Get an agent with its settings and state.
#[utoipa::path(
    get, path = "/agents/{name}", tag = "agents", operation_id = "get_agent",
    params(("name" = String, Path, description = "Name of the agent")),
    responses(
        (status = 200, description = "The agent", body = AgentDocument<'static>),
        (status = 404, description = "There is no such agent", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn get(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
) -> Result<Response, Problem> {
    off_thread(move || {
        let mut out = Vec::new();
        let agent = of(&shared)?.get(&name).map_err(problem)?;
        push_agent(&mut out, &agent);
        Ok(json_bytes(out))
    })
    .await
}

/// Create an agent, or change its settings.
///
/// The agent is called when another participant writes in a conversation whose `agent` is its name.
#[utoipa::path(
    put, path = "/agents/{name}", tag = "agents", operation_id = "put_agent",
    params(("name" = String, Path, description = "Name of the agent")),
    request_body = AgentSettings,
    responses(
        (status = 200, description = "The agent was changed", body = AgentDocument<'static>),
        (status = 201, description = "The agent was created", body = AgentDocument<'static>),
        (status = 400, description = "The request is invalid, or `webhook.allow` does not permit the URL", body = http_api::ProblemDocument),
        (status = 403, description = "The token may not use the agent's name", body = http_api::ProblemDocument),
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
    let pending = off_thread(putting).await?;
    let is_new = within_write_limit(async { pending.await.map_err(problem) }).await?;
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let mut out = Vec::new();
    let agent = of(&shared)?.get(&name).map_err(problem)?;
    push_agent(&mut out, &agent);
    Ok((status, json_bytes(out)).into_response())
}

/// Applies the settings. Absent fields keep their values.
fn put_document(
    webhooks: &Webhooks,
    name: &Name,
    document: AgentSettings,
) -> Result<Pending<bool, WebhookError>, Problem> {
    let before = match webhooks.get(name) {
        Ok(view) => Some(view),
        Err(refusal) if refusal.code() == ErrorCode::NotFound => None,
        Err(refusal) => return Err(problem(refusal)),
    };
    let known = before.as_ref().map(|it| it.schedule);
    let schedule = document.schedule(known.unwrap_or_default())?;
    let settings = document.settings(name, before.as_ref().map(|it| &*it.settings))?;
    webhooks.put(name, settings, schedule).map_err(problem)
}

/// Delete an agent. It is no longer called, and its settings are removed from disk.
#[utoipa::path(
    delete, path = "/agents/{name}", tag = "agents", operation_id = "delete_agent",
    params(("name" = String, Path, description = "Name of the agent")),
    responses(
        (status = 204, description = "The agent was deleted"),
        (status = 403, description = "The token may not use the agent's name", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such agent", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn delete(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
    client: Client,
) -> Result<Response, Problem> {
    client.check(&name)?;
    let deleting = move || of(&shared)?.delete(&name).map_err(problem);
    let pending = off_thread(deleting).await?;
    within_write_limit(async { pending.await.map_err(problem) }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Messages that an agent failed to answer.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(crate) struct DeadDocument {
    /// `org/namespace/id`.
    #[schema(example = "default/default/support-42")]
    conversation: String,
    /// Sequence number of the first unanswered message.
    from_seq: u64,
    /// Sequence number of the last unanswered message.
    to_seq: u64,
    /// Number of calls made.
    attempts: u32,
    /// HTTP status of the last answer; 0 if there was none.
    status: u16,
    /// Error of the last call; absent if it failed before the node's last start.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// Time of the last attempt's failure (RFC 3339).
    at: String,
}

/// List the dead letters of an agent.
#[utoipa::path(
    get, path = "/agents/{name}/dead", tag = "agents", operation_id = "list_dead_letters",
    params(("name" = String, Path, description = "Name of the agent")),
    responses(
        (status = 200, description = "Dead letters of the agent", body = DeadLettersDocument),
        (status = 404, description = "There is no such agent", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn dead(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
) -> Result<Response, Problem> {
    off_thread(move || {
        let dead = of(&shared)?.dead(&name).map_err(problem)?;
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

/// Retry a dead letter: call the agent again.
#[utoipa::path(
    post, path = "/agents/{name}/dead/{id}/retry", tag = "agents", operation_id = "retry_dead_letter",
    params(
        ("name" = String, Path, description = "Name of the agent"),
        ("id" = String, Path, description = "Id of the conversation"),
    ),
    responses(
        (status = 202, description = "The call is scheduled again"),
        (status = 403, description = "The token may not use the agent's name", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such dead letter", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn retry(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
    Conversation(conversation): Conversation,
    client: Client,
) -> Result<Response, Problem> {
    client.check(&name)?;
    let retry = move || of(&shared)?.retry(&name, &conversation).map_err(problem);
    off_thread(retry).await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// Discard a dead letter.
#[utoipa::path(
    delete, path = "/agents/{name}/dead/{id}", tag = "agents", operation_id = "drop_dead_letter",
    params(
        ("name" = String, Path, description = "Name of the agent"),
        ("id" = String, Path, description = "Id of the conversation"),
    ),
    responses(
        (status = 204, description = "The dead letter was discarded"),
        (status = 403, description = "The token may not use the agent's name", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such dead letter", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn discard(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
    Conversation(conversation): Conversation,
    client: Client,
) -> Result<Response, Problem> {
    client.check(&name)?;
    let discard = move || of(&shared)?.discard(&name, &conversation).map_err(problem);
    off_thread(discard).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
