//! Conversations over HTTP: bytes to words and back.
//!
//! | method and path, behind `/v1` or `/v1/{org}/{namespace}` | |
//! |---|---|
//! | `GET /conversations` | a list, by what metadata says |
//! | `GET /export`, `POST /import` | many conversations as JSON lines |
//! | `GET /inbox/{who}` | somebody's conversations, and how much he has not read; or as events |
//! | `POST /conversations/{id}/messages` | append |
//! | `GET /conversations/{id}/messages` | a page; or all of it and what comes, as events |
//! | `POST /conversations/{id}/messages/{message}/stream`, `…/stop` | an answer as it is made |
//! | `GET PUT PATCH DELETE /conversations/{id}` | what it is; erased |
//! | `POST /conversations/{id}/fork` | a copy |
//! | `GET /conversations/{id}/context` | the messages to send to a model |
//! | `GET PUT DELETE /conversations/{id}/summary` | what stands for older messages there |
//! | `PUT /conversations/{id}/cursors/{who}` | how far somebody has read |
//! | `GET /conversations/{id}/export`, `POST …/import` | all of it as JSON lines |
//! | `GET PUT DELETE /agents/{name}`, `GET /webhooks` | who is called when somebody writes |
//! | `GET /agents/{name}/dead`, `DELETE …/{id}`, `POST …/{id}/retry` | what was not answered |
//!
//! and `GET /v1/ws`: both, for many conversations at once.
//!
//! Parts and metadata of a message come back byte for byte as they were written. Whatever is not
//! understood is an error that names it: a field that is passed over is a message that says
//! something else than its author meant.

mod agents;
mod answer;
mod append;
mod bulk;
mod context;
mod events;
mod fork;
mod inbox;
mod incoming;
mod list;
mod outgoing;
mod place;
mod policy;
mod read;
mod socket;
mod state;
mod summary;
mod tail;
mod transfer;
mod window;

pub use agents::call_agents;
pub use events::EventJson;
pub(super) use place::query;
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
        .routes(routes!(agents::list))
        .routes(routes!(agents::get, agents::put, agents::delete))
        .routes(routes!(agents::dead))
        .routes(routes!(agents::retry))
        .routes(routes!(agents::discard))
        .routes(routes!(state::get, state::put, state::patch, state::delete))
        .routes(routes!(append::append, read::read))
        .routes(routes!(context::context))
        .routes(routes!(
            summary::get_summary,
            summary::put_summary,
            summary::delete_summary
        ))
        .routes(routes!(summary::put_cursor))
        .routes(routes!(answer::stream))
        .routes(routes!(answer::stop))
        .routes(routes!(fork::fork))
        .routes(routes!(transfer::export))
        .routes(routes!(transfer::import))
        .routes(routes!(bulk::export_all))
        .routes(routes!(bulk::import_all))
}
