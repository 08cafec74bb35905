//! `/openapi.json`: the description of the HTTP API, generated from its handlers.
//!
//! Each route is registered together with its description, so every route has one. [`complete`]
//! adds what holds for all routes, such as common errors and limits of numbers.

mod complete;

use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::routing::get;
use http_api::Shared;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder};

/// Returns the head of the document: title, version and authentication.
pub(super) fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Telpher")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("The HTTP API of a Telpher node."));
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = ComponentsBuilder::new().security_scheme("token", token);
    OpenApiBuilder::new()
        .info(info.build())
        .components(Some(components.build()))
        .build()
}

/// Adds the route of the document to the routes that it describes.
pub(super) fn serve(routes: Router<Shared>, document: OpenApi) -> Router<Shared> {
    let json = Bytes::from(complete::completed(document).to_string());
    let answer = move || std::future::ready(([(header::CONTENT_TYPE, "application/json")], json));
    routes.route(PATH, get(answer))
}

const PATH: &str = "/openapi.json";
