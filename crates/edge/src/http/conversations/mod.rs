//! Conversations over HTTP: bytes to words and back.
//!
//! | method and path, behind `/v1` or `/v1/{org}/{namespace}` | |
//! |---|---|
//! | `GET /conversations` | a list, by what metadata says |
//! | `GET /inbox/{who}` | somebody's conversations, and how much he has not read; or as events |
//! | `POST /conversations/{id}/messages` | append |
//! | `GET /conversations/{id}/messages` | a page; or all of it and what comes, as events |
//!
//! and `GET /v1/ws`: both, for many conversations at once.
//!
//! Parts and metadata of a message come back byte for byte as they were written. Whatever is not
//! understood is an error that names it: a field that is passed over is a message that says
//! something else than its author meant.

mod append;
mod inbox;
mod incoming;
mod list;
mod outgoing;
mod place;
mod read;
mod socket;
mod tail;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Shared;

/// The routes of all conversations.
pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(socket::socket))
        .nest("/v1", of_namespace())
        .nest("/v1/{org}/{namespace}", of_namespace())
}

fn of_namespace() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(inbox::inbox))
        .routes(routes!(append::append, read::read))
}
