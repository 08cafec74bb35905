//! `/openapi.json`: what the door serves, generated from its handlers.
//!
//! Every route is registered together with its description, so there is none without the other.
//! What a conversation is is served under two prefixes; the longer one's parameters and the names of
//! its operations are written here, once.

use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::routing::get;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, RefOr};
use utoipa::openapi::{InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, Required, Type};

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
    let json = match complete(document).to_json() {
        Ok(json) => Bytes::from(json),
        Err(error) => unreachable!("a document made of texts can be written as JSON: {error}"),
    };
    let answer = move || std::future::ready(([(header::CONTENT_TYPE, "application/json")], json));
    routes.route(PATH, get(answer))
}

const PATH: &str = "/openapi.json";

/// What the handlers do not say: the long paths' parameters and operations of their own.
fn complete(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        if !path.contains("{org}") {
            continue;
        }
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
            &mut item.patch,
        ];
        operations.into_iter().flatten().for_each(lengthen);
    }
    document
}

fn lengthen(operation: &mut Operation) {
    if let Some(id) = &mut operation.operation_id {
        id.push_str("_in_namespace");
    }
    let parameters = operation.parameters.get_or_insert_default();
    for name in ["namespace", "org"] {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)));
        parameters.insert(0, RefOr::T(parameter.build()));
    }
}
