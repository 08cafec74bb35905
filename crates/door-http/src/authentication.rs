//! The checks in front of a route: authentication by a token, a ticket, or the pass of another
//! protocol, and what the client and the node may do.
//!
//! All are one layer, since each layer costs every request a clone of the route and an allocation.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use door::{Gate, Pass};
use http_api::{Client, Problem, bearer_of, unauthenticated};
use model::ErrorCode;
use node::Node;

use crate::recent::RecentAnswers;
use crate::revocable;
use crate::tickets::{TicketError, Tickets};

/// The checks of a group of routes.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) node: Node,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) tickets: Arc<Tickets>,
    pub(crate) recent: RecentAnswers,
    pub(crate) rules: GroupRules,
}

/// The rules of a group of routes.
#[derive(Clone, Copy, Default)]
pub(crate) struct GroupRules {
    /// True if halted clients may only read, also what no limit counts.
    pub(crate) refuses_halted: bool,
    /// The service of the routes, if only a node that is alone has it.
    pub(crate) alone: Option<&'static str>,
}

/// Runs a request with the pass of its client, while the pass is valid.
pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    mut request: Request,
    next: Next,
) -> Response {
    let ticket = guard.tickets.take_from(&mut request, &*guard.gate);
    // A request that arrived over another protocol has its client's pass already.
    let admitted = match (ticket, request.extensions().get::<Pass>()) {
        (Some(ticket), _) => ticket.map_err(refuse_ticket),
        (None, Some(pass)) => Ok(pass.clone()),
        (None, None) => guard
            .gate
            .admit(token_of(&request))
            .map_err(unauthenticated),
    };
    match admitted {
        Ok(pass) => {
            request.extensions_mut().insert(pass.clone());
            revocable::run(pass, request, |pass, request| {
                guard.run(pass, request, next)
            })
            .await
        }
        Err(problem) => {
            guard
                .node
                .counters()
                .count(platform::Counter::Unauthenticated);
            problem.into_response()
        }
    }
}

impl Guard {
    async fn run(&self, pass: Pass, request: Request, next: Next) -> Response {
        match self.refusal(pass, request.method()) {
            Some(problem) => problem.into_response(),
            None => self.recent.share(request, next).await,
        }
    }

    /// Returns the reason why the group refuses a request of an admitted client.
    fn refusal(&self, pass: Pass, method: &Method) -> Option<Problem> {
        let is_look = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if self.rules.refuses_halted
            && !is_look
            && let Err(problem) = Client::new(pass).check_halt(&self.node)
        {
            return Some(problem);
        }
        let reason = self.node.refused_on_cluster(self.rules.alone?)?;
        Some(Problem::of(ErrorCode::Unsupported, reason))
    }
}

/// Returns the token of a request; empty for none. For a WebSocket, browsers can send a token as a
/// sub-protocol only.
fn token_of(request: &Request) -> &str {
    match bearer_of(request.headers()) {
        "" if request.headers().contains_key(header::UPGRADE) => {
            bearer_of_protocols(request.headers())
        }
        token => token,
    }
}

/// Returns the token among the sub-protocols of a WebSocket, `bearer.TOKEN`; empty for none.
fn bearer_of_protocols(headers: &HeaderMap) -> &str {
    let fields = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let fields = fields.filter_map(|value| value.to_str().ok());
    let mut protocols = fields.flat_map(|value| value.split(','));
    let token = protocols.find_map(|protocol| protocol.trim().strip_prefix("bearer."));
    token.unwrap_or_default()
}

fn refuse_ticket(error: TicketError) -> Problem {
    Problem::of(ErrorCode::Unauthenticated, error.to_string())
}
