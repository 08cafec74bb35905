//! Authentication: the client of a request, and administrators, as extractors.

use access::Principal;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use door::{Pass, Refused, Role};
use model::{ErrorCode, Name};
use platform::Durable;
use quota::Unit;
use quota_service::{By, HaltNotice, Requester};

use crate::problem::Problem;

/// An authenticated administrator.
#[derive(Clone, Debug)]
pub struct Admin {
    who: String,
}

impl Admin {
    /// Returns the author and reason of a change for the audit log.
    pub fn by<'a>(&'a self, reason: &'a str) -> By<'a> {
        let who = &self.who;
        By { who, reason }
    }

    /// Returns the name of the administrator for the audit log.
    pub fn who(&self) -> &str {
        &self.who
    }
}

/// The client of a request.
#[derive(Clone, Debug)]
pub struct Client(Pass);

/// Returns the client as an owner of holds: its token, and whether it is an administrator.
pub fn requester(pass: &Pass) -> Requester<'_> {
    Requester {
        principal: pass.token().map(|token| &*token.name),
        is_admin: pass.role() == Role::Admin,
    }
}

impl Client {
    /// Returns the client that a pass admits.
    pub fn new(pass: Pass) -> Self {
        Self(pass)
    }

    /// Returns the authenticated identity: the name that is charged and halted, and the names that
    /// it may use.
    pub fn principal(&self) -> &Principal {
        self.0.principal()
    }

    /// Returns the pass that admitted the request. It may be revoked.
    pub fn pass(&self) -> &Pass {
        &self.0
    }

    /// Returns an error if the client may not use this name.
    pub fn check(&self, name: &Name) -> Result<(), Problem> {
        check_subject(self.principal(), name.base())
    }

    /// Returns an error if the client may not delete or change this topic, which counts as the name
    /// `default/default/TOPIC`.
    pub fn check_topic(&self, topic: &str) -> Result<(), Problem> {
        let checked = door::topics::check(self.principal(), topic);
        checked.map_err(|forbidden| Problem::of(ErrorCode::Denied, forbidden.to_string()))
    }

    /// Returns the client as an owner of holds.
    pub fn requester(&self) -> Requester<'_> {
        requester(&self.0)
    }

    /// Returns an error if the client is halted. For operations that no limit counts.
    pub fn check_halt(&self, node: &node::Node) -> Result<(), Problem> {
        match node.quotas().halt_of(self.principal()) {
            None => Ok(()),
            Some(halt) => Err(refuse_halted(halt)),
        }
    }

    /// Charges appended bytes to the client. Returns the write that must be durable before the
    /// answer.
    pub fn charge_bytes(&self, node: &node::Node, bytes: u64) -> Result<Option<Durable>, Problem> {
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
pub fn check_halt(node: &node::Node, principal: &Principal) -> Result<(), Problem> {
    match node.quotas().halt_of_taker(principal) {
        None => Ok(()),
        Some(halt) => Err(refuse_halted(halt)),
    }
}

fn refuse_halted(halt: HaltNotice) -> Problem {
    Problem::of(ErrorCode::Denied, halt.to_string()).with("halted", halt.prefix)
}

/// Returns an error if the principal may not use this subject.
pub fn check_subject(principal: &Principal, subject: &str) -> Result<(), Problem> {
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

/// Returns the bearer token; empty for none.
pub fn bearer_of(headers: &HeaderMap) -> &str {
    headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default()
}

/// Returns the problem of a token that the gate refuses.
pub fn unauthenticated(refused: Refused) -> Problem {
    let code = match refused {
        Refused::Missing | Refused::Unknown => ErrorCode::Unauthenticated,
        Refused::Broken => ErrorCode::Internal,
    };
    Problem::of(code, refused.to_string())
}
