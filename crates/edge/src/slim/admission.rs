//! Who a client is, by what it shows where a stream begins.
//!
//! ```text
//! authorization: Bearer TOKEN             a token of the node, or a JWT where there is a key for them
//! authorization: Basic base64(NAME:TOKEN) a token of the node, with its name
//! ```

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, header};
use node::tokens::Token;

use super::jwt::is_jwt;
use super::{Door, Options};
use crate::gate::Refused;

/// Somebody who is let in.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    /// As rules know him; empty where nobody has to say who he is.
    pub(super) name: Arc<str>,
    pub(super) token: Option<Arc<Token>>,
}

/// Somebody who is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Denied {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("the JWT is not accepted: {0}")]
    Jwt(String),
    #[error("the token has another name")]
    Name,
}

/// Judges the head of a request.
pub(super) fn admit(door: &Door, headers: &HeaderMap) -> Result<Admitted, Denied> {
    let shown = headers.get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.to_str().ok());
    let (name, token) = shown.map_or((None, String::new()), read);
    let Options { jwt, .. } = &*door.options;
    if let Some(jwt) = jwt.as_ref().filter(|_| name.is_none() && is_jwt(&token)) {
        let subject = jwt.subject(&token);
        let name = subject
            .map_err(|error| Denied::Jwt(error.to_string()))?
            .into();
        return Ok(Admitted { name, token: None });
    }
    let pass = door.gate.admit(&token)?;
    let Some(token) = pass.token else {
        // Nobody has to show a token of the node; a JWT is another matter.
        return match jwt {
            Some(_) => Err(Refused::Missing.into()),
            None => Ok(Admitted::default()),
        };
    };
    if name.is_some_and(|name| name != token.name) {
        return Err(Denied::Name);
    }
    Ok(Admitted {
        name: token.name.as_str().into(),
        token: Some(token),
    })
}

/// The name, if there has to be one, and what is shown with it.
fn read(shown: &str) -> (Option<String>, String) {
    if let Some(token) = shown.strip_prefix("Bearer ") {
        return (None, token.trim().to_owned());
    }
    let decoded = shown
        .strip_prefix("Basic ")
        .and_then(|encoded| BASE64.decode(encoded).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = decoded.as_deref().and_then(|text| text.split_once(':'));
    pair.map_or((None, String::new()), |(name, token)| {
        (Some(name.to_owned()), token.to_owned())
    })
}
