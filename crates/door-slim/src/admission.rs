//! Authentication of SLIM clients, at the start of a stream.
//!
//! ```text
//! authorization: Bearer TOKEN             a token of the node, or a JWT where there is a key for them
//! authorization: Basic base64(NAME:TOKEN) a token of the node, with its name
//! ```

use std::sync::Arc;
use std::time::Duration;

use access::Principal;
use access::tokens::Token;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use door::{Refused, Role};
use http::{HeaderMap, header};
use messaging::{Connection, Facts, Refusal};
use platform::Counter;

use super::jwt::{Bearer, is_jwt};
use super::listener::{Door, Options};
use super::outlet::{Framing, SlimOutlet};
use super::refusals::LEGACY;
use super::scope::Scope;

/// The credentials that a client sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Credentials {
    /// The name of the token, if the client sends one.
    name: Option<String>,
    /// The token; empty for none.
    token: String,
    /// The `user-agent` of the request.
    software: String,
}

/// An admitted client.
pub(super) struct Entered {
    pub(super) connection: Connection,
    pub(super) outlet: Arc<SlimOutlet>,
    /// Its name in rules; empty where no authentication is required.
    pub(super) name: Arc<str>,
    /// The names that its token allows.
    pub(super) scope: Scope,
    /// The `user-agent` of the request.
    pub(super) software: String,
    /// The time for which its credentials are still valid, if they expire.
    pub(super) time_left: Option<Duration>,
}

/// The reason why a client is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Denied {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("the JWT is not accepted: {0}")]
    Jwt(String),
    #[error("the token does not belong to this name")]
    Name,
    #[error("{}", LEGACY)]
    Legacy,
    /// The node has reached a limit, or shuts down.
    #[error(transparent)]
    Full(#[from] Refusal),
}

struct Admitted {
    name: Arc<str>,
    principal: Principal,
    token: Option<Arc<Token>>,
    time_left: Option<Duration>,
}

/// Admits a client with valid credentials, as a connection of the node.
pub(super) fn enter(
    door: &Door,
    shown: Credentials,
    remote: &str,
    framing: Framing,
) -> Result<Entered, Denied> {
    if framing == Framing::Grpc && door.refusals.is_returning(remote, &shown.software) {
        return Err(Denied::Legacy);
    }
    let software = shown.software.clone();
    let Admitted {
        name,
        principal,
        token,
        time_left,
    } = admit(door, shown).inspect_err(|_| {
        door.node.counters().count(Counter::Unauthenticated);
    })?;
    let scope = match &token {
        Some(_) => Scope::of_token(&principal),
        None => Scope::any(),
    };
    let size_max = door.options.queue_size_max;
    let outlet = Arc::new(SlimOutlet::new(remote.to_owned(), size_max, framing));
    let facts = Facts {
        name: None,
        principal,
        remote: remote.to_owned(),
        door: "slim",
        token,
        user: None,
        trusted: false,
        calls_max: 0,
        credit_messages: 0,
        credit_bytes: 0,
    };
    let connection = door
        .node
        .messaging()
        .connect(facts, |_| messaging::Outlet::Client(outlet.clone()))?;
    Ok(Entered {
        connection,
        outlet,
        name,
        scope,
        software,
        time_left,
    })
}

/// Returns whether every client is admitted without credentials.
pub(super) fn is_open(door: &Door) -> bool {
    door.options.jwt.is_none() && door.gate.admit("").is_ok()
}

fn admit(door: &Door, Credentials { name, token, .. }: Credentials) -> Result<Admitted, Denied> {
    let Options { jwt, .. } = &*door.options;
    if let Some(jwt) = jwt.as_ref().filter(|_| name.is_none() && is_jwt(&token)) {
        let bearer = jwt.bearer(&token, door.node.ports().clock.unix_ms());
        let Bearer { subject, time_left } =
            bearer.map_err(|error| Denied::Jwt(error.to_string()))?;
        return Ok(Admitted {
            principal: Principal::of_user(&subject, Role::Agent),
            name: subject.into(),
            token: None,
            time_left: Some(time_left),
        });
    }
    let pass = door.gate.admit(&token)?;
    let principal = pass.principal().clone();
    let Some(token) = pass.token().cloned() else {
        // The gate requires no token here, but a configured JWT key requires a JWT.
        return match jwt {
            Some(_) => Err(Refused::Missing.into()),
            None => Ok(Admitted {
                name: Arc::default(),
                principal,
                token: None,
                time_left: None,
            }),
        };
    };
    if name.is_some_and(|name| name != token.name) {
        return Err(Denied::Name);
    }
    Ok(Admitted {
        name: token.name.as_str().into(),
        principal,
        token: Some(token),
        time_left: None,
    })
}

impl Credentials {
    /// Returns the credentials in the headers of a request.
    pub(super) fn in_headers(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let shown = text(header::AUTHORIZATION).map_or_else(Self::default, Self::read);
        let software = text(header::USER_AGENT).unwrap_or_default().to_owned();
        Self { software, ..shown }
    }

    /// Returns the credentials in the query of a request: web pages cannot set its headers.
    pub(super) fn in_query(query: &str) -> Self {
        let mut pairs = query.split('&');
        let token = pairs.find_map(|pair| pair.strip_prefix("token="));
        Self::bearer(token.unwrap_or_default())
    }

    /// Returns whether there are any.
    pub(super) fn is_any(&self) -> bool {
        !self.token.is_empty()
    }

    fn bearer(token: &str) -> Self {
        Self {
            token: token.trim().to_owned(),
            ..Self::default()
        }
    }

    fn read(shown: &str) -> Self {
        if let Some(token) = shown.strip_prefix("Bearer ") {
            return Self::bearer(token);
        }
        let decoded = shown
            .strip_prefix("Basic ")
            .and_then(|encoded| BASE64.decode(encoded).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let pair = decoded.as_deref().and_then(|text| text.split_once(':'));
        pair.map_or_else(Self::default, |(name, token)| Self {
            name: Some(name.to_owned()),
            token: token.to_owned(),
            ..Self::default()
        })
    }
}
