//! Agents over HTTP: calls, one-way messages, writes to mailboxes, and pulls from them.
//!
//! | method and path, after `/v1` or `/v1/{org}/{namespace}` | purpose |
//! |---|---|
//! | `POST /agents/{name}/request`, `…/request/{method}` | call an agent; a whole answer, or events |
//! | `POST /agents/{name}/send` | a one-way message to one or all instances |
//! | `POST /agents/{name}/write` | a message that waits in the agent's mailbox |
//! | `POST /agents/{name}/mailbox/take` | messages of the mailbox, for the time of a lease |
//! | `POST /agents/{name}/mailbox/ack`, `…/nack`, `…/renew` | answer messages that were taken |
//! | `GET /agents/{name}/description` | what the agent says about itself and its methods |
//!
//! Bodies are passed unparsed. Each request is a connection of its own towards the other clients of
//! the node, so that its calls are cancelled when its client disconnects, and limits, halts and names
//! apply to it as to a native client.
//!
//! Invariant: *a request has the outcome and the error code that a native client gets.*

mod caller;
mod description;
mod events;
mod leases;
mod metadata;
mod one_way;
mod place;
mod problem;
mod replies;
mod request;
mod take;

pub use description::description_json;
use http_api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of all agents.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .nest("/v1", of_namespace())
        .nest("/v1/{org}/{namespace}", of_namespace())
}

fn of_namespace() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(request::request))
        .routes(routes!(request::request_method))
        .routes(routes!(one_way::send))
        .routes(routes!(one_way::write))
        .routes(routes!(take::take))
        .routes(routes!(leases::ack))
        .routes(routes!(leases::nack))
        .routes(routes!(leases::renew))
        .routes(routes!(description::describe))
}
