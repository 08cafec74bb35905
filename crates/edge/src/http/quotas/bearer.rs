//! Who asks for a change.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use model::ErrorCode;
use node::quotas::By;

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
