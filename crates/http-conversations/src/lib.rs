//! Conversations over HTTP: routes, request parsing and JSON answers.
//!
//! | method and path, after `/v1` or `/v1/{org}/{namespace}` | purpose |
//! |---|---|
//! | `GET /conversations` | list conversations, filtered by metadata |
//! | `GET /export`, `POST /import` | many conversations as JSON lines |
//! | `GET /inbox/{who}` | a participant's conversations and unread counts; or events |
//! | `POST /conversations/{id}/messages` | append messages |
//! | `GET /conversations/{id}/messages` | a page; or existing and new messages as events |
//! | `GET /conversations/{id}/messages/{message}` | one message by its id |
//! | `POST /conversations/{id}/messages/{message}/stream`, `…/stop` | stream an answer; stop it |
//! | `GET PUT PATCH DELETE /conversations/{id}` | show, create, change or erase a conversation |
//! | `POST /conversations/{id}/clear` | erase all messages; the name and the numbering stay |
//! | `POST /conversations/{id}/retract` | take back the newest messages |
//! | `POST /conversations/{id}/fork` | copy a conversation |
//! | `GET /conversations/{id}/context` | the messages to send to a model |
//! | `GET PUT DELETE /conversations/{id}/summary` | the summary of older messages |
//! | `PUT /conversations/{id}/cursors/{who}` | a participant's read position |
//! | `GET /conversations/{id}/export`, `POST …/import` | one conversation as JSON lines |
//! | `GET PUT DELETE /agents/{name}`, `GET /webhooks` | agents that are called for new messages |
//! | `GET /agents/{name}/dead`, `DELETE …/{id}`, `POST …/{id}/retry` | dead letters |
//!
//! `GET /v1/ws` appends to and watches many conversations over one WebSocket.
//!
//! Parts and metadata of a message are returned byte for byte as they were written. An unknown
//! field is an error that names it, because ignoring it could change the meaning of a message.

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
mod retract;
mod socket;
mod state;
mod summary;
mod tail;
mod transfer;
mod window;

pub use agents::call_agents;
pub use append::{APPEND_ROUTES, answer_append, append_route};
pub use events::EventJson;
use http_api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of all conversations.
pub fn routes() -> OpenApiRouter<Shared> {
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
        .routes(routes!(state::clear))
        .routes(routes!(retract::retract))
        .routes(routes!(append::append, read::read))
        .routes(routes!(read::read_message))
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
