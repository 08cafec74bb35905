//! Extractors: the conversation, query and preconditions of a request.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use conversation_service::Conversations;
use http_api::{Problem, Shared, off_thread};
use model::{ErrorCode, Name};

/// The conversation of the path: `/v1/conversations/{id}` or
/// `/v1/{org}/{namespace}/conversations/{id}`.
pub(crate) struct Conversation(pub(crate) Name);

impl FromRequestParts<Shared> for Conversation {
    type Rejection = Problem;

    /// Loads the conversation from disk if needed, so that handlers do not wait for the disk.
    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let params = params(parts, shared).await?;
        let part = |wanted: &str| {
            let found = params.iter().find(|(name, _)| *name == wanted);
            found.map_or("default", |(_, value)| value)
        };
        let (org, namespace, id) = (part("org"), part("namespace"), part("id"));
        for text in [org, namespace, id] {
            if text.contains('/') {
                let detail = format!("`{text}` must not contain a slash");
                return Err(Problem::invalid(detail));
            }
        }
        let name = Name::parse(&format!("{org}/{namespace}/{id}"));
        let name = name.map_err(|error| Problem::invalid(error.to_string()))?;
        loaded(shared, &name).await?;
        Ok(Self(name))
    }
}

/// Returns the conversation of `POST …/messages`, if the path is one without percent escapes.
pub(super) fn of_append(path: &str) -> Option<Name> {
    let (parts, id) = split_append(path)?;
    let text = match parts {
        None => format!("default/default/{id}"),
        Some((org, namespace)) => format!("{org}/{namespace}/{id}"),
    };
    Name::parse(&text).ok()
}

/// Returns the organization and namespace, if the path names them, and the id of the conversation.
pub(super) fn split_append(path: &str) -> Option<(Option<(&str, &str)>, &str)> {
    let rest = path.strip_prefix("/v1/")?.strip_suffix("/messages")?;
    let mut parts = rest.split('/');
    let parts = [
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
    ];
    let is_plain = |part: &str| !part.is_empty() && !part.contains('%');
    match parts {
        [Some("conversations"), Some(id), None, ..] if is_plain(id) => Some((None, id)),
        [
            Some(org),
            Some(namespace),
            Some("conversations"),
            Some(id),
            None,
        ] if [org, namespace, id].into_iter().all(is_plain) => Some((Some((org, namespace)), id)),
        _ => None,
    }
}

/// Loads a conversation on a blocking thread if it has to be read from disk.
pub(super) async fn loaded(shared: &Shared, name: &Name) -> Result<(), Problem> {
    match shared.node.conversations() {
        Some(conversations) if !conversations.is_at_hand(name).unwrap_or(true) => {
            let (shared, name) = (shared.clone(), name.clone());
            off_thread(move || Ok(of(&shared)?.load(&name)?)).await
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the parameters of the path.
pub(super) async fn params<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<RawPathParams, Problem> {
    let params = RawPathParams::from_request_parts(parts, state).await;
    params.map_err(|error| Problem::invalid(error.to_string()))
}

/// Returns the conversations of the node, or an error if it has none.
pub(super) fn of(shared: &Shared) -> Result<&Conversations, Problem> {
    shared.node.conversations().ok_or_else(|| {
        let detail = "this node has no storage, so it has no conversations";
        Problem::of(ErrorCode::Unsupported, detail)
    })
}

/// The header fields that an append depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) if_match: Option<&'a [u8]>,
    pub(super) if_none_match: Option<&'a [u8]>,
    pub(super) idempotency_key: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
        let field = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes);
        Self {
            if_match: field(header::IF_MATCH),
            if_none_match: field(header::IF_NONE_MATCH),
            idempotency_key: field(IDEMPOTENCY_KEY),
        }
    }

    /// Returns the required sequence number of the newest message, from `If-Match` or `expect` in
    /// the body. `If-None-Match: *` gives 0: the conversation must be empty.
    pub(super) fn expected(self, expect: Option<u64>) -> Result<Option<u64>, Problem> {
        let expect = match self.if_none_match.map(<[u8]>::trim_ascii) {
            None => expect,
            Some(b"*") if expect.is_none_or(|seq| seq == 0) => Some(0),
            Some(_) => {
                let detail = "`if-none-match` must be `*`, which requires an empty conversation";
                return Err(Problem::invalid(detail));
            }
        };
        if_match(self.if_match, expect, "the number of the newest message")
    }

    /// Returns `Idempotency-Key`, with or without quotes.
    pub(super) fn idempotency_key(self) -> Result<Option<&'a str>, Problem> {
        let Some(value) = self.idempotency_key else {
            return Ok(None);
        };
        let key = unquoted(std::str::from_utf8(value).unwrap_or_default());
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        if key.is_empty() || !key.bytes().all(is_allowed) {
            let detail =
                "`idempotency-key` becomes a message's id: letters, digits and . _ : - only";
            return Err(Problem::invalid(detail));
        }
        Ok(Some(key))
    }
}

/// Returns the version that `If-Match` requires of a conversation.
pub(super) fn expected_version(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let value = headers.get(header::IF_MATCH).map(HeaderValue::as_bytes);
    if_match(value, None, "the version of the conversation")
}

fn if_match(
    value: Option<&[u8]>,
    expect: Option<u64>,
    meaning: &str,
) -> Result<Option<u64>, Problem> {
    let Some(value) = value else {
        return Ok(expect);
    };
    let seq = std::str::from_utf8(value)
        .ok()
        .and_then(|text| unquoted(text).parse::<u64>().ok());
    match (seq, expect) {
        (None, _) => Err(Problem::invalid(format!(
            "`if-match` must be {meaning}, as in `If-Match: \"41\"`"
        ))),
        (Some(seq), Some(expect)) if seq != expect => Err(Problem::invalid(format!(
            "`if-match` ({seq}) and `expect` ({expect}) differ"
        ))),
        (seq, _) => Ok(seq),
    }
}

/// Returns the value of a field without spaces around it and without its quotes, if it has any.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let quoted = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    quoted.unwrap_or(text)
}

/// The last parameter of a path after the conversation's: a message id, or a participant.
pub(crate) struct Behind(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Behind {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let params = params(parts, state).await?;
        let is_it = |name: &str| matches!(name, "message" | "who");
        let found = params.iter().find(|(name, _)| is_it(name));
        Ok(Self(found.map_or("", |(_, value)| value).to_owned()))
    }
}
