//! `/openapi.json`: what the door serves, generated from its handlers.
//!
//! Every route is registered together with its description, so there is none without the other.
//! Rules that hold for all routes, such as the errors and the bounds of numbers, are added by
//! [`complete`].

mod complete;

use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::routing::get;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder};

use super::Shared;

/// What went wrong (RFC 9457), with our code.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemDocument {
    #[serde(rename = "type")]
    kind: String,
    title: String,
    #[schema(example = 412)]
    status: u16,
    /// For programs: `telpher explain` and the documentation say what each means.
    #[schema(example = "conflict")]
    code: String,
    /// For people.
    #[schema(example = "the newest message is 43, not 41")]
    detail: String,
    /// Of the newest message, where that is what went wrong.
    head_seq: Option<u64>,
    /// Of the state, where that is what went wrong.
    version: Option<u64>,
    /// What a window would cost.
    tokens: Option<u64>,
    /// When to try again.
    retry_ms: Option<u64>,
    /// Of the message that is in the way.
    seq: Option<u64>,
    /// Of the oldest message that is kept.
    start_seq: Option<u64>,
    /// Which message of the batch it is about, from 0.
    index: Option<u64>,
    /// Where in the body.
    path: Option<String>,
}

/// What stands above the routes.
pub(super) fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Telpher")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("The HTTP door of a Telpher node."));
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = ComponentsBuilder::new().security_scheme("token", token);
    OpenApiBuilder::new()
        .info(info.build())
        .components(Some(components.build()))
        .build()
}

/// Adds the document itself to the routes it describes.
pub(super) fn serve(routes: Router<Shared>, document: OpenApi) -> Router<Shared> {
    let json = Bytes::from(complete::completed(document).to_string());
    let answer = move || std::future::ready(([(header::CONTENT_TYPE, "application/json")], json));
    routes.route(PATH, get(answer))
}

const PATH: &str = "/openapi.json";
