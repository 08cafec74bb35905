//! Topics over HTTP: records as JSON, with the offsets that Kafka clients see.
//!
//! | method and path | |
//! |---|---|
//! | `GET POST /v1/topics` | list topics; create a topic |
//! | `GET PATCH DELETE /v1/topics/{topic}` | show, change or delete a topic |
//! | `POST /v1/topics/{topic}/records` | append records |
//! | `GET /v1/topics/{topic}/partitions/{partition}/records` | a page of records |
//! | `GET /v1/topics/{topic}/partitions/{partition}/follow` | existing and new records, as events |
//! | `GET /v1/groups`, `GET /v1/groups/{group}` | consumer groups, their members and lag |
//! | `POST /v1/groups/{group}/offsets` | reset the offsets of a group, or show what a reset would do |
//!
//! Keys, values and headers of records are bytes; the module `bytes` defines how JSON represents them.
//! Readers see committed records only (Kafka's `read_committed`).

mod admin;
mod append;
mod bytes;
mod follow;
mod group_offsets;
mod groups;
mod place;
mod read;
mod users;

use http_api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use users::routes as user_routes;

/// The routes of topics.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(admin::list, admin::create))
        .routes(routes!(admin::get, admin::patch, admin::delete))
        .routes(routes!(append::append))
        .routes(routes!(read::read))
        .routes(routes!(follow::follow))
        .routes(routes!(groups::list))
        .routes(routes!(groups::get))
        .routes(routes!(group_offsets::reset))
}
