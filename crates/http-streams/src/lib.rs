//! Raw streams over HTTP.
//!
//! | method and path, after `/v1` or `/v1/{org}/{namespace}` | purpose |
//! |---|---|
//! | `GET /streams` | list the streams of the namespace |
//! | `GET DELETE /streams/{stream}` | show a stream; delete its records |
//! | `POST /streams/{stream}/trim` | delete the oldest records |
//! | `POST GET /streams/{stream}/records` | append records; a page of records |
//! | `GET /streams/{stream}/records/{offset}` | the bytes of one record |
//! | `GET /streams/{stream}/follow` | existing and new records, as events |
//!
//! Records are bytes: JSON shows them as `body` if they are UTF-8, otherwise in base64 as
//! `body_base64`.

mod admin;
mod append;
mod follow;
mod place;
mod problem;
mod read;

use http_api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of streams.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .nest("/v1", of_namespace())
        .nest("/v1/{org}/{namespace}", of_namespace())
}

fn of_namespace() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(admin::list))
        .routes(routes!(admin::get, admin::delete))
        .routes(routes!(admin::trim))
        .routes(routes!(append::append, read::read))
        .routes(routes!(read::record))
        .routes(routes!(follow::follow))
}
