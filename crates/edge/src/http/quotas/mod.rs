//! Quotas over HTTP: takes and settlements, views, and administration.
//!
//! | method and path | purpose | token |
//! |---|---|---|
//! | `POST /v1/take` | one or several takes, with hold and wait | any |
//! | `POST /v1/settle` | end a hold with the actual cost | any |
//! | `GET /v1/quota/{org}/{namespace}/{agent}` | the state of each limit of a subject | any |
//! | `GET /v1/top`, `GET /v1/watch` | the largest consumers; events | any |
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
//! [`compat`] serves the API of a third-party rate limiter on a listener of its own.

mod admin;
mod answer;
mod asks;
mod audit;
mod bearer;
pub(super) mod compat;
mod fields;
mod look;
mod metrics;
mod overrides;
mod policies;
mod settle;
mod take;
mod watch;
mod windows;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use model::ErrorCode;
use node::quotas::Desk;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Shared;
use super::front::{FastRequest, Method, Verdict};
use super::problem::Problem;
use super::reply::Reply;
pub(super) use asks::Later;
use bearer::requester;
pub(super) use bearer::{Admin, Client};
use compat::Limiter;
pub(super) use metrics::encode as encode_metrics;
pub(crate) use settle::FOREIGN as FOREIGN_HOLD;
pub(super) use take::PATH as TAKE_PATH;

/// The frequent requests of a listener that are answered before they reach hyper.
#[derive(Clone)]
pub(super) enum Surface {
    /// Telpher's own API.
    Own(Shared),
    /// The API of the rate limiter that `compat` replaces.
    Compat(Arc<Limiter>),
}

impl Surface {
    /// Returns true if the fast path answers this method and path.
    pub(super) fn serves(&self, method: Method, path: &str) -> bool {
        match self {
            Self::Own(_) => method == Method::Post && path == take::PATH,
            Self::Compat(_) => compat::is_asked_often(method, path),
        }
    }

    /// Returns true if clients need no token.
    pub(super) fn is_open(&self) -> bool {
        let gate = match self {
            Self::Own(shared) => &shared.gate,
            Self::Compat(limiter) => limiter.gate(),
        };
        gate.admit("").is_ok()
    }

    /// Answers a request for which [`Self::serves`] is true.
    pub(super) fn answer(
        &self,
        desk: &mut Desk,
        request: &FastRequest<'_>,
        peer: IpAddr,
        reply: &mut Reply,
    ) -> Verdict {
        match self {
            Self::Own(shared) => match shared.gate.admit(request.token) {
                Ok(pass) => {
                    let (principal, owner) = (pass.principal(), requester(&pass).principal);
                    take::answer_in_front(&shared.node, principal, desk, request, owner, reply)
                }
                // The router counts and reports the failed authentication.
                Err(_) => Verdict::NotHere,
            },
            Self::Compat(limiter) => limiter.answer_in_front(desk, request, peer, reply),
        }
    }

    /// Records the latency of an answer.
    pub(super) fn observe(&self, status: StatusCode, took: Duration) {
        match self {
            Self::Own(shared) => shared.latencies.observe_take(take::PATH, status, took),
            Self::Compat(_) => {}
        }
    }

    /// Answers that the decision may or may not be on disk.
    pub(super) fn unconfirmed(&self, reply: &mut Reply) {
        match self {
            Self::Own(_) => reply.problem(&unconfirmed()),
            Self::Compat(_) => compat::unconfirmed(reply),
        }
    }

    /// Returns nanoseconds since 1970-01-01 UTC.
    pub(super) fn now_ns(&self) -> u64 {
        match self {
            Self::Own(shared) => shared.node.quotas().now_ns(),
            Self::Compat(limiter) => limiter.now_ns(),
        }
    }
}

/// The routes of quotas.
pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(take::take))
        .routes(routes!(settle::settle))
        .routes(routes!(look::peek))
        .routes(routes!(look::top))
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

/// Returns the `unconfirmed` problem: the decision may or may not be on disk.
fn unconfirmed() -> Problem {
    let detail = node::quotas::Unconfirmed.to_string();
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Unconfirmed,
        detail,
    )
}
