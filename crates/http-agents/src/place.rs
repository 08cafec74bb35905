//! Extractors: the agent and the method that a request names.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use http_api::{Problem, Shared};
use model::limits::METHOD_LENGTH_MAX;
use model::{ErrorCode, Name};

/// The agents of the node itself, which members of a cluster serve, too.
const OWN_AGENTS: &str = "telpher/system/";

/// The agent of the path, and its method if the path has one.
pub(crate) struct Agent {
    pub(crate) name: Name,
    /// Empty for none.
    pub(crate) method: String,
}

impl Agent {
    /// Returns the name with an instance, if one is given.
    pub(crate) fn instance(&self, instance: Option<&str>) -> Result<Name, Problem> {
        match instance {
            None => Ok(self.name.clone()),
            Some(instance) => {
                let name = self.name.with_instance(instance);
                name.map_err(|error| Problem::invalid(error.to_string()))
            }
        }
    }
}

impl FromRequestParts<Shared> for Agent {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, shared).await;
        let params = params.map_err(|error| Problem::invalid(error.to_string()))?;
        let found = |wanted: &str| {
            let mut found = params.iter().filter(|(name, _)| *name == wanted);
            found.next().map(|(_, value)| value)
        };
        let part = |wanted| found(wanted).unwrap_or("default");
        let (org, namespace, agent) = (part("org"), part("namespace"), part("name"));
        for text in [org, namespace, agent] {
            if text.contains('/') {
                let detail = format!("`{text}` must not contain a slash");
                return Err(Problem::invalid(detail));
            }
        }
        let name = Name::parse(&format!("{org}/{namespace}/{agent}"));
        let name = name.map_err(|error| Problem::invalid(error.to_string()))?;
        if !name.base().starts_with(OWN_AGENTS)
            && let Some(reason) = shared
                .node
                .refused_on_cluster("messages to agents, calls and mailboxes")
        {
            return Err(Problem::of(ErrorCode::Unsupported, reason));
        }
        let method = found("method").unwrap_or_default().to_owned();
        check_method(&method)?;
        Ok(Self { name, method })
    }
}

/// Checks the length of a method's name.
pub(crate) fn check_method(method: &str) -> Result<(), Problem> {
    let length = method.len();
    if length <= METHOD_LENGTH_MAX {
        return Ok(());
    }
    let detail = format!("the method has {length} bytes (limit {METHOD_LENGTH_MAX})");
    Err(Problem::invalid(detail))
}
