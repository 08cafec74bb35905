//! Quotas over HTTP: takes and settlements, views, and administration.
//!
//! | method and path | purpose | token |
//! |---|---|---|
//! | `POST /v1/take` | one or several takes, with hold and wait | any |
//! | `POST /v1/settle` | end a hold with the actual cost | any |
//! | `GET /v1/quota/{org}/{namespace}/{agent}` | the state of each limit of a subject | any |
//! | `GET /v1/top`, `GET /v1/watch` | the largest consumers; events | any |
//! | `GET /v1/usage` | what subjects have spent, by day and limit | any, for its own names |
//! | `GET PUT /v1/policies` | all limits | any; admin to change |
//! | `PUT /v1/factors/{limit}` | scale a limit, for a time or permanently | admin |
//! | `GET PUT DELETE /v1/overrides` | another limit for one prefix | any; admin to change |
//! | `GET /v1/halts`, `POST /v1/halt`, `POST /v1/resume` | deny all takes of a prefix | any; admin to change |
//! | `POST /v1/reset` | refill buckets | admin |
//! | `GET /v1/audit` | past changes with author and reason | admin |
//!
//! A denied take is 429 if credit returns with time and 403 if it does not. A take that can never
//! pass is 400, and one that cannot be decided is 503. The answer to a change is sent when the
//! change is on disk; so is the answer to a take of a `sync` limit.
//!
//! `compat` serves the API of a third-party rate limiter on a listener of its own.

mod admin;
mod answer;
mod asks;
mod audit;
mod compat;
mod errors;
mod fields;
mod look;
mod metrics;
mod overrides;
mod policies;
mod settle;
mod take;
mod usage;
mod watch;
mod windows;

use http_api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use compat::{LIMIT as COMPAT_LIMIT, routes as compat_routes};
pub use errors::not_durable;
pub use metrics::encode as encode_metrics;
pub use take::{PATH as TAKE_PATH, answer_take};

/// The routes of quotas.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(take::take))
        .routes(routes!(settle::settle))
        .routes(routes!(look::peek))
        .routes(routes!(look::top))
        .routes(routes!(usage::usage))
        .routes(routes!(watch::watch))
        .routes(routes!(policies::get, policies::put))
        .routes(routes!(admin::factor))
        .routes(routes!(admin::halts))
        .routes(routes!(admin::halt))
        .routes(routes!(admin::resume))
        .routes(routes!(admin::reset))
        .routes(routes!(overrides::list, overrides::put, overrides::delete))
        .routes(routes!(audit::audit))
}
