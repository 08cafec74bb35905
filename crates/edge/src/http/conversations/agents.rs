//! Agents that are called when somebody writes: settings, lists, dead letters.

mod deliver;

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
pub use deliver::call_agents;
use model::{ErrorCode, Name};
use node::conversations::Policy;
use node::webhooks::{
    AgentView, DeadView, OnBusy, Schedule, WebhookSettings, WebhookTarget, Webhooks,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::append::{answered, json, json_bytes};
use super::outgoing::{push, push_json};
use super::place::Conversation;
use super::policy::{PolicyDocument, push_policy};
use super::state::push_member;
use crate::http::body::{self, wrong_at};
use crate::http::problem::Problem;
use crate::http::time::push_rfc3339;
use crate::http::{Shared, off_thread};

/// Bytes of a body, at most.
const BODY_MAX: usize = 256 << 10;

/// Headers that are sent with a call, at most.
const HEADERS_MAX: usize = 32;

/// Longest text of the settings.
const TEXT_MAX: usize = 8 << 10;

/// Longest waiting that can be asked for: a day.
const WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// The budget of the window that an agent is sent, in tokens, when nobody says otherwise.
const BUDGET: u32 = 8_000;

/// The agent of the path.
pub(crate) struct AgentName(Name);

impl<S: Send + Sync> FromRequestParts<S> for AgentName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (namespace, params) = namespace(parts, state).await?;
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

/// `org/namespace` of the path.
pub(crate) struct Namespace(String);

impl<S: Send + Sync> FromRequestParts<S> for Namespace {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (namespace, _) = namespace(parts, state).await?;
        Ok(Self(namespace))
    }
}

async fn namespace<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<(String, RawPathParams), Problem> {
    let params = RawPathParams::from_request_parts(parts, state).await;
    let params = params.map_err(|error| Problem::invalid(error.to_string()))?;
    let part = |wanted: &str| {
        let found = params.iter().find(|(name, _)| *name == wanted);
        found.map_or("default", |(_, value)| value)
    };
    let namespace = format!("{}/{}", part("org"), part("namespace"));
    Ok((namespace, params))
}

fn of(shared: &Shared) -> Result<Webhooks<'_>, Problem> {
    shared.node.webhooks().ok_or_else(|| {
        let detail = "this node calls no agents";
        Problem::of(ErrorCode::Unsupported, detail)
    })
}

/// How an agent is reached and called; what is not said stays as it is.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = AgentSettings)]
pub(crate) struct AgentSettings {
    /// Where it is called by HTTP, if the configuration lets it: `webhook.allow`. Without one, or
    /// with an empty one, it is called by its name, `conversation` being the method.
    #[schema(example = "https://bots.example.com/support")]
    url: Option<String>,
    /// What calls are signed with, as Standard Webhooks has it: `whsec_` and 24 to 64 bytes in Base64.
    /// Empty for no signature.
    secret: Option<String>,
    /// How long the beginning of an answer may take, and each piece of it.
    #[schema(example = 30000)]
    timeout_ms: Option<u64>,
    /// How long an answer may take that was promised with 202.
    #[schema(example = 600000)]
    answer_ms: Option<u64>,
    /// It is called when nobody has said anything for so long.
    #[schema(example = 200)]
    debounce_ms: Option<u64>,
    /// But no longer than this after the first message.
    #[schema(example = 2000)]
    max_wait_ms: Option<u64>,
    /// What a message does while it answers: `queue` (the default), `interrupt` or `reject`.
    on_busy: Option<String>,
    /// Calls for the same messages; then they are a dead letter.
    #[schema(example = 10)]
    attempts_max: Option<u32>,
    /// The pause after the first call that failed; it doubles.
    #[schema(example = 1000)]
    pause_ms: Option<u64>,
    /// Calls in flight.
    #[schema(example = 64)]
    calls_max: Option<u32>,
    /// Sent with each call.
    headers: Option<std::collections::BTreeMap<String, String>>,
    /// How the window is cut that it is sent; a budget of 8000 tokens unless it says otherwise.
    context: Option<PolicyDocument>,
}

const BUSY: [(&str, OnBusy); 3] = [
    ("queue", OnBusy::Queue),
    ("interrupt", OnBusy::Interrupt),
    ("reject", OnBusy::Reject),
];

impl AgentSettings {
    fn schedule(&self, before: Schedule) -> Result<Schedule, Problem> {
        let on_busy = match &self.on_busy {
            None => before.on_busy,
            Some(word) => {
                let found = BUSY.iter().find(|(it, _)| it == word);
                let words = BUSY.iter().map(|(it, _)| *it);
                let unknown = || wrong_at("on_busy", &body::unknown("way", word, words));
                found.map(|(_, it)| *it).ok_or_else(unknown)?
            }
        };
        let schedule = Schedule {
            debounce_ms: self.debounce_ms.unwrap_or(before.debounce_ms),
            max_wait_ms: self.max_wait_ms.unwrap_or(before.max_wait_ms),
            on_busy,
            attempts_max: self.attempts_max.unwrap_or(before.attempts_max),
            pause_ms: self.pause_ms.unwrap_or(before.pause_ms),
            calls_max: self.calls_max.unwrap_or(before.calls_max),
            ..before
        };
        for (path, ms, least) in [
            ("debounce_ms", schedule.debounce_ms, 0),
            ("max_wait_ms", schedule.max_wait_ms, 0),
            ("pause_ms", schedule.pause_ms, 1),
        ] {
            check_ms(path, ms, least)?;
        }
        if schedule.attempts_max == 0 || schedule.calls_max == 0 {
            let detail = "`attempts_max` and `calls_max` are at least 1";
            return Err(Problem::invalid(detail));
        }
        Ok(schedule)
    }

    fn settings(
        self,
        name: &Name,
        before: Option<&WebhookSettings>,
    ) -> Result<WebhookSettings, Problem> {
        let by_name = || WebhookTarget::Name(name.base().to_owned());
        let url = self.url.map(|url| match url.as_str() {
            "" => by_name(),
            _ => WebhookTarget::Url(url),
        });
        let target = url.or_else(|| before.map(|it| it.target.clone()));
        let headers = self.headers.map(|it| it.into_iter().collect::<Vec<_>>());
        let headers = headers.or_else(|| before.map(|it| it.headers.clone()));
        let secret = self.secret.or_else(|| before.map(|it| it.secret.clone()));
        let context = match &self.context {
            None => before.map_or_else(|| Some(policy()), |it| it.context.clone()),
            Some(document) => {
                let known = before.and_then(|it| it.context.clone());
                let policy = document.applied_to(known.unwrap_or_else(policy));
                Some(policy.map_err(|reason| wrong_at("context", &reason))?)
            }
        };
        let known_ms = before.map_or((30_000, 600_000), |it| (it.timeout_ms, it.answer_ms));
        let settings = WebhookSettings {
            target: target.unwrap_or_else(by_name),
            secret: secret.unwrap_or_default(),
            timeout_ms: self.timeout_ms.unwrap_or(known_ms.0),
            answer_ms: self.answer_ms.unwrap_or(known_ms.1),
            headers: headers.unwrap_or_default(),
            context,
        };
        check_ms("timeout_ms", settings.timeout_ms, 1)?;
        check_ms("answer_ms", settings.answer_ms, 1)?;
        check_sizes(&settings)?;
        Ok(settings)
    }
}

fn policy() -> Policy {
    Policy {
        budget: BUDGET,
        ..Policy::default()
    }
}

fn check_ms(path: &str, ms: u64, least: u64) -> Result<(), Problem> {
    match (least..=WAIT_MS_MAX).contains(&ms) {
        true => Ok(()),
        false => Err(wrong_at(path, &format!("{least} to {WAIT_MS_MAX}"))),
    }
}

fn check_sizes(settings: &WebhookSettings) -> Result<(), Problem> {
    if settings.headers.len() > HEADERS_MAX {
        return Err(wrong_at("headers", &format!("at most {HEADERS_MAX}")));
    }
    let target = match &settings.target {
        WebhookTarget::Url(it) | WebhookTarget::Name(it) => it,
    };
    let headers = settings
        .headers
        .iter()
        .flat_map(|(name, value)| [name, value]);
    let mut texts = [target, &settings.secret].into_iter().chain(headers);
    match texts.all(|text| text.len() <= TEXT_MAX) {
        true => Ok(()),
        false => Err(Problem::invalid(format!(
            "a text is longer than {TEXT_MAX} bytes"
        ))),
    }
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
    responses((status = 200, description = "They", body = Vec<AgentDocument<'static>>))
)]
pub(super) async fn list(
    State(shared): State<Shared>,
    Namespace(namespace): Namespace,
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
    )
)]
pub(super) async fn put(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = body::read_json(&headers, body, BODY_MAX).await?;
    let document: AgentSettings = body::parse(&body)?;
    let webhooks = of(&shared)?;
    let before = match webhooks.get(&name) {
        Ok(view) => Some(view),
        Err(refusal) if refusal.code == ErrorCode::NotFound => None,
        Err(refusal) => return Err(refusal.into()),
    };
    let known = before.as_ref().map(|it| it.schedule);
    let schedule = document.schedule(known.unwrap_or_default())?;
    let settings = document.settings(&name, before.as_ref().map(|it| &*it.settings))?;
    let is_new = answered(webhooks.put(&name, settings, schedule)?).await?;
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let mut out = Vec::new();
    push_agent(&mut out, &webhooks.get(&name)?);
    Ok((status, json_bytes(out)).into_response())
}

/// Call an agent no more; what it is leaves the disk.
#[utoipa::path(
    delete, path = "/agents/{name}", tag = "agents", operation_id = "delete_agent",
    params(("name" = String, Path, description = "The agent")),
    responses(
        (status = 204, description = "It is no more"),
        (status = 404, description = "There is no such agent", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn delete(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
) -> Result<Response, Problem> {
    answered(of(&shared)?.delete(&name)?).await?;
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
    /// When it was given up (RFC 3339).
    at: String,
}

/// What an agent was not able to answer.
#[utoipa::path(
    get, path = "/agents/{name}/dead", tag = "agents", operation_id = "list_dead_letters",
    params(("name" = String, Path, description = "The agent")),
    responses(
        (status = 200, description = "It", body = Vec<DeadDocument>),
        (status = 404, description = "There is no such agent", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn dead(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
) -> Result<Response, Problem> {
    off_thread(move || {
        let dead = of(&shared)?.dead(&name)?;
        let dead: Vec<_> = dead.into_iter().map(dead_document).collect();
        Ok(json(&serde_json::json!({ "dead": dead })))
    })
    .await
}

fn dead_document(view: DeadView) -> DeadDocument {
    let DeadView {
        conversation,
        letter,
    } = view;
    let mut at = Vec::new();
    push_rfc3339(&mut at, letter.at_ms);
    DeadDocument {
        conversation,
        from_seq: letter.from_seq,
        to_seq: letter.to_seq,
        attempts: letter.attempts,
        status: letter.status,
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
        (status = 404, description = "There is no such dead letter", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn retry(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
    Conversation(conversation): Conversation,
) -> Result<Response, Problem> {
    of(&shared)?.retry(&name, &conversation)?;
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
        (status = 404, description = "There is no such dead letter", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn discard(
    State(shared): State<Shared>,
    AgentName(name): AgentName,
    Conversation(conversation): Conversation,
) -> Result<Response, Problem> {
    of(&shared)?.discard(&name, &conversation)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
