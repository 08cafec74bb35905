//! Extractors: the stream and the namespace that a request names.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use http_api::{Problem, Shared};
use model::Name;
use store::{Stream, StreamError, Streams};

use crate::problem::of_stream;

/// The stream of the path, which need not exist, and the node's streams.
pub(crate) struct Named {
    pub(crate) streams: Streams,
    pub(crate) stream: Stream,
    /// The offset of the path, if it has one.
    pub(crate) offset: Option<u64>,
}

/// The namespace of the path, `org/namespace`.
pub(crate) struct Namespace(pub(crate) String);

/// Returns the streams of the node, or an error if it has none.
pub(crate) fn of(shared: &Shared) -> Result<&Streams, Problem> {
    let streams = shared.node.streams();
    streams.ok_or_else(|| of_stream(StreamError::NoStorage))
}

/// Returns a parameter of the path.
fn part<'a>(params: &'a RawPathParams, wanted: &str) -> Option<&'a str> {
    let mut found = params.iter().filter(|(name, _)| *name == wanted);
    found.next().map(|(_, value)| value)
}

async fn params(parts: &mut Parts, shared: &Shared) -> Result<RawPathParams, Problem> {
    let params = RawPathParams::from_request_parts(parts, shared).await;
    params.map_err(|error| Problem::invalid(error.to_string()))
}

fn name(params: &RawPathParams, last: &str) -> Result<Name, Problem> {
    let place = |wanted| part(params, wanted).unwrap_or("default");
    let (org, namespace) = (place("org"), place("namespace"));
    for text in [org, namespace, last] {
        if text.contains('/') {
            let detail = format!("`{text}` must not contain a slash");
            return Err(Problem::invalid(detail));
        }
    }
    let name = Name::parse(&format!("{org}/{namespace}/{last}"));
    name.map_err(|error| Problem::invalid(error.to_string()))
}

impl FromRequestParts<Shared> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let params = params(parts, shared).await?;
        let name = name(&params, part(&params, "stream").unwrap_or_default())?;
        let stream = Stream::new(name).map_err(Problem::invalid)?;
        let offset = match part(&params, "offset") {
            None => None,
            Some(text) => {
                let wrong = |_| Problem::invalid(format!("`{text}` is not an offset"));
                Some(text.parse().map_err(wrong)?)
            }
        };
        Ok(Self {
            streams: of(shared)?.clone(),
            stream,
            offset,
        })
    }
}

impl FromRequestParts<Shared> for Namespace {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let params = params(parts, shared).await?;
        let name = name(&params, "x")?;
        Ok(Self(format!("{}/{}", name.org(), name.namespace())))
    }
}
