//! Who asks for a change.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use model::ErrorCode;
use node::quotas::{By, Durable, Unit};
use node::tokens::Token;

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

/// Who is charged for what is done without a connection: its token, as at the native door.
#[derive(Clone, Debug)]
pub(in crate::http) struct Client(Option<Arc<Token>>);

impl Client {
    /// Whether it may append so many bytes; and what must be on disk before that is told.
    pub(in crate::http) fn charge_bytes(
        &self,
        node: &node::Handle,
        bytes: u64,
    ) -> Result<Option<Durable>, Problem> {
        let token = self.0.as_ref().map(|token| &*token.name);
        let admitted = node
            .quotas()
            .admit_token(token, &[(Unit::APPENDED_BYTES, bytes)]);
        admitted.map_err(|throttled| {
            let problem = Problem::of(throttled.code(), throttled.message());
            match throttled.retry_after_ms() {
                0 => problem,
                retry_ms => problem.with("retry_ms", retry_ms),
            }
        })
    }
}

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let pass = parts.extensions.get::<Pass>();
        Ok(Self(pass.and_then(|pass| pass.token.clone())))
    }
}

impl<S: Sync> FromRequestParts<S> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match parts.extensions.get::<Pass>() {
            Some(pass) if pass.role == Role::Admin => {
                let token = pass.token.as_ref();
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
