//! The HTTP API over the native protocol: a request is a JSON object.
//!
//! ```json
//! {"method": "GET", "path": "/v1/conversations/c1/messages?last=5", "headers": {"if-match": "\"4\""},
//!  "body": {"any": "JSON"}}
//! ```
//!
//! `upload` names a body whose pieces follow: `{"upload": "u-1", "text": "…"}` adds one, and `"end":
//! true` ends it. `text` is sent in place of `body` as it is: as `application/jsonl`, unless `headers` name
//! another type. The answer is a head, `{"status":200,"headers":{}}`, followed by the body in
//! pieces as they become available.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{Request, Response, header};
use axum::response::IntoResponse;
use door::{Gate, Pass};
use futures_util::Stream;
use http_api::Problem;
use http_api::body;
use http_api::{Connections, Operations};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use json::Text;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::metrics::EncodeMetrics;
use super::routes::routes;
use super::uploads::Uploads;

/// Largest piece of a body, in bytes.
const PIECE_SIZE: usize = 256 << 10;

/// The routes of a node for clients of other protocols.
#[derive(Clone)]
pub struct Local {
    node: node::Node,
    service: TowerToHyperService<Router>,
    uploads: Uploads,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Local")
    }
}

/// A request as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LocalRequest<'a> {
    #[serde(borrow)]
    method: Text<'a>,
    #[serde(borrow)]
    path: Text<'a>,
    #[serde(borrow, default)]
    headers: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    upload: Option<Text<'a>>,
}

/// An answer: its head and the pieces of its body.
#[derive(Debug)]
pub struct Answer {
    head: Bytes,
    body: BodyDataStream,
    /// Remaining bytes of a piece that is larger than [`PIECE_SIZE`].
    rest: Bytes,
}

impl Local {
    /// Creates the routes of `node`. Its metrics include those of `connections` and of the
    /// other listeners.
    pub fn new(
        node: node::Node,
        gate: Arc<dyn Gate>,
        connections: Arc<Connections>,
        metrics: &'static [EncodeMetrics],
        operations: Option<Arc<dyn Operations>>,
    ) -> Self {
        let routes = routes(node.clone(), gate, connections, metrics, operations);
        Self {
            node,
            service: TowerToHyperService::new(routes.router),
            uploads: Uploads::default(),
        }
    }

    /// Executes a request of a client of another protocol. `source` is the client's connection, as
    /// the node's own agents receive it. Quotas and permissions are the client's, unless the
    /// request has a field `authorization`. An invalid request gets an answer, too.
    pub async fn ask(&self, source: Option<&str>, asked: &[u8]) -> Answer {
        let mut request = match self.request(source, asked) {
            Err(problem) => return Answer::new(problem.into_response()),
            Ok(request) => request,
        };
        if !request.headers().contains_key(header::AUTHORIZATION)
            && let Some(facts) =
                source.and_then(|source| self.node.messaging().facts_of_source(source))
        {
            let pass = Pass::with(facts.principal, facts.token);
            request.extensions_mut().insert(pass);
        }
        match self.service.call(request).await {
            Ok(response) => Answer::new(response),
            Err(never) => match never {},
        }
    }

    /// Adds a piece to an upload of the connection `source`: `{"upload": "u-1", "text": "…", "end":
    /// true}`. Returns when the piece is in the queue of its request.
    pub async fn upload(&self, source: Option<&str>, asked: &[u8]) -> Result<(), Problem> {
        self.uploads.add(source, asked).await
    }

    fn request(&self, source: Option<&str>, asked: &[u8]) -> Result<Request<Body>, Problem> {
        let asked: LocalRequest<'_> = body::parse(asked)?;
        let open = |name: &Text<'_>| self.uploads.open(source, &name.0);
        let upload = asked.upload.as_ref().map(open).transpose()?;
        request(&asked, upload)
    }
}

impl Answer {
    fn new(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let headers = parts.headers.iter().filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Some((name.as_str(), value))
        });
        let head = serde_json::json!({
            "status": parts.status.as_u16(),
            "headers": headers.collect::<BTreeMap<_, _>>(),
        });
        Self {
            head: Bytes::from(head.to_string()),
            body: body.into_data_stream(),
            rest: Bytes::new(),
        }
    }

    /// Returns the head: `{"status":200,"headers":{…}}`.
    pub fn head(&self) -> Bytes {
        self.head.clone()
    }

    /// Returns the next piece of the body, or the error that cut it off.
    pub async fn next(&mut self) -> Option<Result<Bytes, String>> {
        if self.rest.is_empty() {
            let next = poll_fn(|cx| Pin::new(&mut self.body).poll_next(cx)).await?;
            match next {
                Ok(bytes) => self.rest = bytes,
                Err(error) => return Some(Err(error.to_string())),
            }
        }
        let size = self.rest.len().min(PIECE_SIZE);
        Some(Ok(self.rest.split_to(size)))
    }
}

fn request(asked: &LocalRequest<'_>, upload: Option<Body>) -> Result<Request<Body>, Problem> {
    let (body, content_type) = match (asked.body, &asked.text, upload) {
        (Some(json), None, None) => (Body::from(json.get().to_owned()), Some("application/json")),
        (None, Some(text), None) => {
            let text = text.0.clone().into_owned();
            (Body::from(text), Some("application/jsonl"))
        }
        (None, None, Some(upload)) => (upload, Some("application/jsonl")),
        (None, None, None) => (Body::empty(), None),
        (Some(_), Some(_), _) => {
            return Err(Problem::invalid("`body` and `text` cannot be combined"));
        }
        (Some(_), ..) | (_, Some(_), _) => {
            let detail = "`upload` cannot be combined with `body` or `text`";
            return Err(Problem::invalid(detail));
        }
    };
    let mut request = Request::builder()
        .method(asked.method.0.as_ref())
        .uri(asked.path.0.as_ref());
    for (name, value) in &asked.headers {
        request = request.header(name.as_ref(), value.as_ref());
    }
    let is_said = |name: &Cow<'_, str>| name.eq_ignore_ascii_case("content-type");
    if let Some(content_type) = content_type
        && !asked.headers.keys().any(is_said)
    {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    let request = request.body(body);
    request.map_err(|error| Problem::invalid(format!("invalid request: {error}")))
}
