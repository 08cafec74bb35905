//! Extractors: the authenticated client of a request, and administrators.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use model::{ErrorCode, Name};
use node::access::Principal;
use node::quotas::{By, Durable, HaltNotice, Requester, Unit};

use crate::gate::{Pass, Role};
use crate::http::problem::Problem;

/// An authenticated administrator.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    who: String,
}

impl Admin {
    /// Returns the author and reason of a change for the audit log.
    pub(super) fn by<'a>(&'a self, reason: &'a str) -> By<'a> {
        let who = &self.who;
        By { who, reason }
    }

    pub(super) fn who(&self) -> &str {
        &self.who
    }
}

/// The client of a request.
#[derive(Clone, Debug)]
pub(in crate::http) struct Client(Pass);

/// Returns the client as an owner of holds: its token, and whether it is an administrator.
pub(super) fn requester(pass: &Pass) -> Requester<'_> {
    Requester {
        principal: pass.token().map(|token| &*token.name),
        is_admin: pass.role() == Role::Admin,
    }
}

impl Client {
    /// Returns the authenticated identity: the name that is charged and halted, and the names that
    /// it may use.
    pub(in crate::http) fn principal(&self) -> &Principal {
        self.0.principal()
    }

    /// Returns the pass that admitted the request. It may be revoked.
    pub(in crate::http) fn pass(&self) -> &Pass {
        &self.0
    }

    /// Returns an error if the client may not use this name.
    pub(in crate::http) fn check(&self, name: &Name) -> Result<(), Problem> {
        check_subject(self.principal(), name.base())
    }

    /// Returns an error if the client may not delete or change this topic, which counts as the name
    /// `default/default/TOPIC`.
    pub(in crate::http) fn check_topic(&self, topic: &str) -> Result<(), Problem> {
        let checked = crate::topics::check(self.principal(), topic);
        checked.map_err(|forbidden| Problem::of(ErrorCode::Denied, forbidden.to_string()))
    }

    /// Returns the client as an owner of holds.
    pub(super) fn requester(&self) -> Requester<'_> {
        requester(&self.0)
    }

    /// Returns an error if the client is halted. For operations that no limit counts.
    pub(in crate::http) fn check_halt(&self, node: &node::Node) -> Result<(), Problem> {
        match node.quotas().halt_of(self.principal()) {
            None => Ok(()),
            Some(halt) => Err(refuse(halt)),
        }
    }

    /// Charges appended bytes to the client. Returns the write that must be durable before the
    /// answer.
    pub(in crate::http) fn charge_bytes(
        &self,
        node: &node::Node,
        bytes: u64,
    ) -> Result<Option<Durable>, Problem> {
        // An empty append is refused later and costs nothing.
        if bytes == 0 {
            return Ok(None);
        }
        let costs = [(Unit::APPENDED_BYTES, bytes)];
        let admitted = node.quotas().admit_principal(self.principal(), &costs);
        admitted.map_err(|throttled| {
            let problem = Problem::of(throttled.code(), throttled.message());
            match throttled.retry_after_ms() {
                0 => problem,
                retry_ms => problem.with("retry_ms", retry_ms),
            }
        })
    }
}

/// Returns an error if the authenticated client is halted, regardless of the subject of its takes.
pub(super) fn check_halt(node: &node::Node, principal: &Principal) -> Result<(), Problem> {
    match node.quotas().halt_of_taker(principal) {
        None => Ok(()),
        Some(halt) => Err(refuse(halt)),
    }
}

fn refuse(halt: HaltNotice) -> Problem {
    Problem::of(ErrorCode::Denied, halt.to_string()).with("halted", halt.prefix)
}

/// Returns an error if the principal may not use this subject.
pub(super) fn check_subject(principal: &Principal, subject: &str) -> Result<(), Problem> {
    let checked = principal.check_subject(subject);
    checked.map_err(|forbidden| Problem::of(ErrorCode::Denied, forbidden.to_string()))
}

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pass = parts.extensions.get::<Pass>();
        // Every route with a client is behind the authentication.
        let missing = || Problem::of(ErrorCode::Internal, "the request was not authenticated");
        pass.cloned().map(Self).ok_or_else(missing)
    }
}

impl<S: Sync> FromRequestParts<S> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match parts.extensions.get::<Pass>() {
            Some(pass) if pass.role() == Role::Admin => {
                let token = pass.token();
                let who = token.map_or_else(|| "anybody".to_owned(), |token| token.name.clone());
                Ok(Self { who })
            }
            _ => {
                let detail =
                    "an administrator's token is required: `telpher token add NAME --role admin`";
                Err(Problem::of(ErrorCode::Denied, detail))
            }
        }
    }
}
