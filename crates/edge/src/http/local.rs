//! The routes for clients of the native protocol: a request is a JSON object instead of bytes on a socket.
//!
//! ```json
//! {"method": "GET", "path": "/v1/conversations/c1/messages?last=5", "headers": {"if-match": "\"4\""},
//!  "body": {"any": "JSON"}}
//! ```
//!
//! Instead of `body`, `text` is sent as it is: as `application/jsonl`, unless `headers` name another
//! type. What comes back is a head, `{"status":200,"headers":{}}`, and then the body, in pieces as they
//! come.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{Request, Response, header};
use axum::response::IntoResponse;
use futures_util::Stream;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::body;
use super::connections::Connections;
use super::problem::Problem;
use crate::gate::{Gate, Pass};
use crate::json::Text;

/// Bytes of a piece of a body, at most.
const PIECE_SIZE: usize = 256 << 10;

/// The routes of a node, for clients that came in by another door.
#[derive(Clone)]
pub struct Local {
    node: node::Handle,
    service: TowerToHyperService<Router>,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Local")
    }
}

/// What is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked<'a> {
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
}

/// What is answered.
#[derive(Debug)]
pub struct Answer {
    head: Bytes,
    body: BodyDataStream,
    /// What is left of a large piece.
    rest: Bytes,
}

impl Local {
    /// The routes of `node`, whose metrics show these connections.
    pub fn new(node: node::Handle, gate: Arc<dyn Gate>, connections: Arc<Connections>) -> Self {
        let routes = super::routes(node.clone(), gate, connections);
        Self {
            node,
            service: TowerToHyperService::new(routes.router),
        }
    }

    /// Asks for a client that came in by another door: `source` is its connection, as the node's own
    /// agents are told it. The request is charged and judged as the client's own, unless it has a
    /// field `authorization`. Whatever is wrong with the question is an answer too.
    pub async fn ask(&self, source: Option<&str>, asked: &[u8]) -> Answer {
        let mut request = match request(asked) {
            Err(problem) => return Answer::new(problem.into_response()),
            Ok(request) => request,
        };
        if !request.headers().contains_key(header::AUTHORIZATION)
            && let Some(facts) = source.and_then(|source| self.node.facts_of_source(source))
        {
            let pass = Pass::with(facts.principal, facts.token);
            request.extensions_mut().insert(pass);
        }
        match self.service.call(request).await {
            Ok(response) => Answer::new(response),
            Err(never) => match never {},
        }
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

    /// `{"status":200,"headers":{…}}`.
    pub fn head(&self) -> Bytes {
        self.head.clone()
    }

    /// The next piece of the body, or why there is no more of it.
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

fn request(asked: &[u8]) -> Result<Request<Body>, Problem> {
    let asked: Asked<'_> = body::parse(asked)?;
    let (body, content_type) = match (asked.body, asked.text) {
        (Some(_), Some(_)) => return Err(Problem::invalid("of `body` and `text` there is one")),
        (Some(json), None) => (json.get().to_owned(), Some("application/json")),
        (None, Some(text)) => (text.0.into_owned(), Some("application/jsonl")),
        (None, None) => (String::new(), None),
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
    let request = request.body(Body::from(body));
    request.map_err(|error| Problem::invalid(format!("that is no request: {error}")))
}
