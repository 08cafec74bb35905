//! Descriptions that agents give of themselves.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use http_api::{Problem, ProblemDocument, Shared};
use messaging::{AgentView, DescribedMethod, Description, SubscriberView};
use model::{ErrorCode, Name};
use node::Node;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::place::Agent;

/// The description of an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentDescription)]
pub(crate) struct DescriptionDocument<'a> {
    /// `org/namespace/agent`.
    #[schema(example = "acme/demo/sum")]
    name: &'a str,
    /// Version of the agent: the newest, if instances have different ones.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(example = "1.2.0")]
    version: &'a str,
    /// Text about the agent, for people and models.
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    /// Methods, in the order of the agent.
    methods: Vec<MethodDocument<'a>>,
    /// Instances of the agent.
    instances: Vec<InstanceDocument<'a>>,
}

/// A method of an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentMethod)]
struct MethodDocument<'a> {
    /// Name; empty for plain messages.
    #[schema(example = "add")]
    name: &'a str,
    /// Text about the method, for people and models.
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    /// True if it answers with items.
    stream: bool,
    /// JSON Schema of a request, as the agent wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    input: Option<&'a RawValue>,
    /// JSON Schema of the answer or of one item, as the agent wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    output: Option<&'a RawValue>,
}

/// An instance of an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = DescribedInstance)]
struct InstanceDocument<'a> {
    /// Name of the instance.
    instance: &'a str,
    /// Its version; absent if it gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    /// True if it described the agent in another way, or did not describe it.
    differs: bool,
}

/// Get the description that an agent gives of itself, with its methods and their JSON Schemas.
///
/// The description lasts as long as an instance that gave it is connected. If instances differ, that
/// of the newest version is returned.
#[utoipa::path(
    get, path = "/agents/{name}/description", tag = "messaging", operation_id = "describe_agent",
    params(("name" = String, Path, description = "Name of the agent")),
    responses(
        (status = 200, description = "The description", body = DescriptionDocument<'static>),
        (status = 404, description = "The agent has no instance, or none that describes it", body = ProblemDocument),
    )
)]
pub(super) async fn describe(
    State(shared): State<Shared>,
    agent: Agent,
) -> Result<Response, Problem> {
    let json = description_json(&shared.node, &agent.name)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}

/// Returns the description of an agent as JSON.
pub fn description_json(node: &Node, name: &Name) -> Result<String, Problem> {
    let missing =
        |what: &str| Problem::of(ErrorCode::NotFound, format!("{what} `{}`", name.base()));
    let view = node.messaging().agent(name);
    let view = view.ok_or_else(|| missing("no instance is subscribed to"))?;
    let description = view.description.as_ref();
    let description = description.ok_or_else(|| missing("no instance describes the agent"))?;
    let json = serde_json::to_string(&document(&view, description));
    json.map_err(|error| Problem::of(ErrorCode::Internal, error.to_string()))
}

fn document<'a>(view: &'a AgentView, description: &'a Description) -> DescriptionDocument<'a> {
    DescriptionDocument {
        name: &view.name,
        version: &description.version,
        description: &description.text,
        methods: description.methods.iter().map(method).collect(),
        instances: view
            .subscribers
            .iter()
            .map(|subscriber| instance(subscriber, description))
            .collect(),
    }
}

fn method(method: &DescribedMethod) -> MethodDocument<'_> {
    MethodDocument {
        name: &method.name,
        description: &method.text,
        stream: method.is_streamed,
        input: schema(&method.input),
        output: schema(&method.output),
    }
}

/// Returns a schema as it was written; it was checked when it arrived.
fn schema(text: &str) -> Option<&RawValue> {
    serde_json::from_str(text).ok()
}

fn instance<'a>(subscriber: &'a SubscriberView, newest: &Description) -> InstanceDocument<'a> {
    let own = subscriber.description.as_deref();
    let version = own.map(|it| it.version.as_str());
    InstanceDocument {
        instance: &subscriber.instance,
        version: version.filter(|version| !version.is_empty()),
        differs: own != Some(newest),
    }
}
