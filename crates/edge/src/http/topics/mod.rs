//! Topics over HTTP: records as JSON, with the offsets that Kafka's clients see.
//!
//! | method and path | |
//! |---|---|
//! | `GET POST /v1/topics` | which there are; a new one |
//! | `GET PATCH DELETE /v1/topics/{topic}` | what it is; more partitions, another configuration; gone |
//! | `POST /v1/topics/{topic}/records` | append |
//! | `GET /v1/topics/{topic}/partitions/{partition}/records` | a page |
//! | `GET /v1/topics/{topic}/partitions/{partition}/follow` | what is there and what comes, as events |
//!
//! What records hold are bytes; [`bytes`] says how they stand in JSON. What a transaction has not
//! committed is not shown.

mod admin;
mod append;
mod bytes;
mod follow;
mod place;
mod read;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use admin::on_disk;
pub(super) use place::of;

use super::Shared;
use super::problem::Problem;
use crate::topics::Refused;

/// The routes of topics.
pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(admin::list, admin::create))
        .routes(routes!(admin::get, admin::patch, admin::delete))
        .routes(routes!(append::append))
        .routes(routes!(read::read))
        .routes(routes!(follow::follow))
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let problem = Self::of(refused.code, refused.message);
        let numbers = refused.numbers.into_iter();
        numbers.fold(problem, |problem, (name, number)| {
            problem.with(name, number)
        })
    }
}
