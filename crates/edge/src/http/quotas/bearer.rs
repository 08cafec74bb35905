//! The client of a request, and administrators among them.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use model::{ErrorCode, Name};
use node::access::Principal;
use node::quotas::{By, Durable, HaltNotice, Requester, Unit};

use crate::gate::{Pass, Role};
use crate::http::problem::Problem;

/// An administrator.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    who: String,
}

impl Admin {
    /// As changes are noted.
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

/// The client as the owner of holds: its token, and whether that is an administrator's.
pub(super) fn requester(pass: &Pass) -> Requester<'_> {
    Requester {
        principal: pass.token().map(|token| &*token.name),
        is_admin: pass.role() == Role::Admin,
    }
}

impl Client {
    /// The proven identity: the name that is charged and halted, and the names that it may use.
    pub(in crate::http) fn principal(&self) -> &Principal {
        self.0.principal()
    }

    /// The pass by which the request was admitted, and which may be revoked.
    pub(in crate::http) fn pass(&self) -> &Pass {
        &self.0
    }

    /// Refuses a name that the client may not use.
    pub(in crate::http) fn check(&self, name: &Name) -> Result<(), Problem> {
        check_subject(self.principal(), name.base())
    }

    /// Refuses a topic, which counts as `default/default/TOPIC`, that the client may not delete or
    /// change.
    pub(in crate::http) fn check_topic(&self, topic: &str) -> Result<(), Problem> {
        let checked = crate::topics::check(self.principal(), topic);
        checked.map_err(|forbidden| Problem::of(ErrorCode::Denied, forbidden.to_string()))
    }

    /// The client as the owner of holds.
    pub(super) fn requester(&self) -> Requester<'_> {
        requester(&self.0)
    }

    /// Refuses what is done without being counted, if the client is halted.
    pub(in crate::http) fn check_halt(&self, node: &node::Handle) -> Result<(), Problem> {
        match node.quotas().halt_of(self.principal()) {
            None => Ok(()),
            Some(halt) => Err(refuse(halt)),
        }
    }

    /// Whether it may append so many bytes; and what must be on disk before that is told.
    pub(in crate::http) fn charge_bytes(
        &self,
        node: &node::Handle,
        bytes: u64,
    ) -> Result<Option<Durable>, Problem> {
        // What is refused for being empty costs nothing.
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

/// Refuses takes of a client that has proven who it is and is halted, whichever subject they are for.
pub(super) fn check_halt(node: &node::Handle, principal: &Principal) -> Result<(), Problem> {
    let halted = principal
        .is_proven()
        .then(|| node.quotas().halt_of(principal));
    match halted.flatten() {
        None => Ok(()),
        Some(halt) => Err(refuse(halt)),
    }
}

fn refuse(halt: HaltNotice) -> Problem {
    Problem::of(ErrorCode::Denied, halt.to_string()).with("halted", halt.prefix)
}

/// Refuses a subject that the principal may not use.
pub(super) fn check_subject(principal: &Principal, subject: &str) -> Result<(), Problem> {
    let checked = principal.check_subject(subject);
    checked.map_err(|forbidden| Problem::of(ErrorCode::Denied, forbidden.to_string()))
}

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pass = parts.extensions.get::<Pass>();
        // Every route that has a client is behind the gate.
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
                let detail = "only an administrator may: `telpher token add NAME --role admin`";
                Err(Problem::of(ErrorCode::Denied, detail))
            }
        }
    }
}
