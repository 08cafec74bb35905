//! Quotas over HTTP: what takes and settles, what looks, and what administers.
//!
//! | method and path | | who |
//! |---|---|---|
//! | `POST /v1/take` | takes, one or several; holds; waits | any token |
//! | `POST /v1/settle` | ends a hold with what it truly cost | any token |
//! | `GET /v1/quota/{org}/{namespace}/{agent}` | how every limit of a subject stands | any token |
//! | `GET /v1/top`, `GET /v1/watch` | who takes most; what happens, as events | any token |
//! | `GET PUT /v1/policies` | the limits | any token; admin |
//! | `PUT /v1/factors/{limit}` | more or less of a limit, for a time | admin |
//! | `GET PUT DELETE /v1/overrides` | another limit for one prefix | any token; admin |
//! | `GET /v1/halts`, `POST /v1/halt`, `POST /v1/resume` | nothing for a prefix | any token; admin |
//! | `POST /v1/reset` | as if nothing had been taken | admin |
//! | `GET /v1/audit` | who changed what, and why | admin |
//!
//! What was denied is 429 if it comes back by itself and 403 if it does not; what can never pass is 400;
//! what cannot be decided is 503. A change is told when it is on disk, and so is a take of a limit that
//! is `sync`.
//!
//! [`compat`] is another surface on a door of its own: that of a limiter which Telpher stands in for.

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
use super::front::{Asked, Method, Verdict};
use super::problem::Problem;
use super::reply::Reply;
pub(super) use asks::Later;
use bearer::requester;
pub(super) use bearer::{Admin, Client};
use compat::Limiter;
pub(super) use metrics::encode as encode_metrics;
pub(crate) use settle::FOREIGN as FOREIGN_HOLD;
pub(super) use take::PATH as TAKE_PATH;

/// What of a door is answered in front of hyper, too.
#[derive(Clone)]
pub(super) enum Surface {
    /// Ours.
    Own(Shared),
    /// That of another limiter.
    Compat(Arc<Limiter>),
}

impl Surface {
    /// Whether a request is one of those.
    pub(super) fn serves(&self, method: Method, path: &str) -> bool {
        match self {
            Self::Own(_) => method == Method::Post && path == take::PATH,
            Self::Compat(_) => compat::is_asked_often(method, path),
        }
    }

    /// Whether clients need no token.
    pub(super) fn is_open(&self) -> bool {
        let gate = match self {
            Self::Own(shared) => &shared.gate,
            Self::Compat(limiter) => limiter.gate(),
        };
        gate.admit("").is_ok()
    }

    /// Answers one of those.
    pub(super) fn answer(
        &self,
        desk: &mut Desk,
        asked: &Asked<'_>,
        peer: IpAddr,
        reply: &mut Reply,
    ) -> Verdict {
        match self {
            Self::Own(shared) => match shared.gate.admit(asked.token) {
                Ok(pass) => {
                    let (principal, owner) = (pass.principal(), requester(&pass).principal);
                    take::answer_in_front(&shared.node, principal, desk, asked, owner, reply)
                }
                // It is counted and told where every door's are.
                Err(_) => Verdict::NotHere,
            },
            Self::Compat(limiter) => limiter.answer_in_front(desk, asked, peer, reply),
        }
    }

    /// Counts the time that an answer took.
    pub(super) fn observe(&self, status: StatusCode, took: Duration) {
        match self {
            Self::Own(shared) => shared.latencies.observe_take(take::PATH, status, took),
            Self::Compat(_) => {}
        }
    }

    /// Answers that what was decided may be on disk, or not.
    pub(super) fn unconfirmed(&self, reply: &mut Reply) {
        match self {
            Self::Own(_) => reply.problem(&unconfirmed()),
            Self::Compat(_) => compat::unconfirmed(reply),
        }
    }

    /// Nanoseconds since 1970-01-01 UTC.
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

/// What was decided may be on disk, or not.
fn unconfirmed() -> Problem {
    let detail = node::quotas::Unconfirmed.to_string();
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Unconfirmed,
        detail,
    )
}
