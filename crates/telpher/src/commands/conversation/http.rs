//! A client of the node's HTTP routes over the native protocol.

use std::collections::BTreeMap;

use client::{Bytes, CallError, Caller, Client, ConnectionState, Replies};
use console::output::{self, Format};
use console::url::encode;
use console::{Environment, Exit, Failure};
use model::{ErrorCode, Name};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use serve::HTTP_AGENT;

use super::name::short;
use crate::commands::target::{Target, agent_name, report_call_failure};

/// A connection to a node's HTTP agent.
pub(in crate::commands) struct Node {
    caller: Caller,
}

/// An HTTP request, as the node's HTTP agent takes it.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct HttpRequest {
    method: &'static str,
    path: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// The error of a request.
#[derive(Debug)]
pub(in crate::commands) enum HttpError {
    /// The call to the HTTP agent failed.
    Call(CallError),
    /// The node refused the request.
    Refused(Problem),
    /// The command itself failed.
    Local(Failure),
}

/// The problem document of a refused request (RFC 9457).
#[derive(Debug)]
pub(in crate::commands) struct Problem {
    pub(in crate::commands) code: ErrorCode,
    pub(in crate::commands) detail: String,
    /// Telpher's own members of the document.
    pub(in crate::commands) extra: Map<String, Value>,
}

/// The body of a successful answer, in pieces.
pub(in crate::commands) struct BodyStream {
    replies: Replies<String>,
}

impl HttpRequest {
    pub(in crate::commands) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: BTreeMap::new(),
            body: None,
            text: None,
        }
    }

    pub(in crate::commands) fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    pub(in crate::commands) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.insert(name, value.to_string());
        self
    }

    /// Sets a JSON body.
    pub(in crate::commands) fn body(mut self, body: &impl Serialize) -> Result<Self, HttpError> {
        self.body = Some(to_raw_value(body).map_err(|error| {
            let message = format!("cannot encode the request as JSON: {error}");
            HttpError::Local(Failure::new(Exit::Failed, message))
        })?);
        Ok(self)
    }

    /// Sets a body of JSON lines.
    pub(in crate::commands) fn lines(mut self, text: String) -> Self {
        self.text = Some(text);
        self.header("content-type", "application/jsonl")
    }
}

impl Node {
    pub(in crate::commands) async fn connect(
        target: &Target,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let client = target.connect(environment).await?;
        let caller = client.caller(HTTP_AGENT);
        let caller = caller.map_err(|error| Failure::new(Exit::Usage, error))?;
        Ok(Self { caller })
    }

    pub(in crate::commands) fn client(&self) -> &Client {
        self.caller.client()
    }

    /// Waits until the client is connected; false if it never will be again.
    pub(in crate::commands) async fn wait_for_connection(&self) -> bool {
        let is_up = |state: &ConnectionState| matches!(state, ConnectionState::Connected { .. });
        self.client().events().wait_for(is_up).await.is_some()
    }

    /// Sends a request and returns the whole body of the successful answer.
    pub(in crate::commands) async fn ask(
        &self,
        request: &HttpRequest,
    ) -> Result<Vec<u8>, HttpError> {
        self.open(request).await?.whole().await
    }

    /// Sends a request and returns the body of the successful answer as a stream.
    pub(in crate::commands) async fn open(
        &self,
        request: &HttpRequest,
    ) -> Result<BodyStream, HttpError> {
        let request = json!(request).to_string();
        let mut pieces = BodyStream {
            replies: self.caller.stream("request", request),
        };
        let head = pieces.next().await?.unwrap_or_default();
        let head = parse(&head)?;
        if (200..300).contains(&head["status"].as_u64().unwrap_or(0)) {
            return Ok(pieces);
        }
        let document = parse(&pieces.whole().await?)?;
        Err(HttpError::Refused(Problem::of(document)))
    }
}

impl BodyStream {
    /// Returns the next piece; `None` at the end.
    pub(in crate::commands) async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        self.replies
            .next()
            .await
            .transpose()
            .map_err(HttpError::Call)
    }

    async fn whole(mut self) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(piece) = self.next().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

/// Parses an answer as JSON.
pub(in crate::commands) fn parse(bytes: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("the node's answer is not JSON: {error}");
        Failure::new(Exit::Failed, message).hint("compare the versions of the command and the node")
    })
}

impl From<Failure> for HttpError {
    fn from(failure: Failure) -> Self {
        Self::Local(failure)
    }
}

impl HttpError {
    /// Converts the error to a failure; with `--json`, also prints it to the standard output.
    pub(in crate::commands) fn report(self, format: Format, name: Option<&Name>) -> Failure {
        match self {
            Self::Local(failure) => failure,
            Self::Call(error) => match agent_name(HTTP_AGENT) {
                Ok(agent) => report_call_failure(format, &agent, &error),
                Err(failure) => failure,
            },
            Self::Refused(problem) => match problem.print(format) {
                Ok(()) => problem.failure(name),
                Err(unprinted) => unprinted,
            },
        }
    }
}

impl Problem {
    pub(in crate::commands) fn of(document: Value) -> Self {
        let mut extra = match document {
            Value::Object(members) => members,
            other => Map::from_iter([("detail".to_owned(), other)]),
        };
        for member in ["type", "title", "status"] {
            extra.remove(member);
        }
        let code = extra.remove("code");
        let code = code.and_then(|code| code.as_str()?.parse().ok());
        let detail = extra.remove("detail");
        let detail = detail.and_then(|detail| Some(detail.as_str()?.to_owned()));
        Self {
            code: code.unwrap_or(ErrorCode::Internal),
            detail: detail.unwrap_or_default(),
            extra,
        }
    }

    fn number(&self, member: &str) -> Option<u64> {
        self.extra.get(member)?.as_u64()
    }

    pub(in crate::commands) fn print(&self, format: Format) -> Result<(), Failure> {
        if !format.json {
            return Ok(());
        }
        let mut error = self.extra.clone();
        error.insert("code".to_owned(), self.code.as_str().into());
        error.insert("message".to_owned(), self.detail.as_str().into());
        output::print(format, &json!({ "error": error }), "")
    }

    fn failure(&self, name: Option<&Name>) -> Failure {
        let message = format!("{}: {}", self.code, self.detail);
        Failure::new(Exit::from(self.code), message).hint(self.hint(name))
    }

    /// Returns a hint for the problem.
    fn hint(&self, name: Option<&Name>) -> String {
        let name = name.map_or("NAME", short);
        let numbers = [
            self.number("head_seq"),
            self.number("tokens"),
            self.number("start_seq"),
        ];
        match (self.code, numbers) {
            (ErrorCode::NotFound, _) => format!(
                "`telpher conversation list` lists the conversations; `telpher conversation append \
                 {name} TEXT` creates this one"
            ),
            (ErrorCode::Gone, _) => "an erased id is never used again: choose another".to_owned(),
            (ErrorCode::Conflict, [Some(head), _, _]) => format!(
                "`telpher conversation show {name}` shows the new messages; repeat with --expect \
                 {head}"
            ),
            (ErrorCode::IdReused, _) => {
                "repeat the first message unchanged, or choose another --id".to_owned()
            }
            (ErrorCode::OverBudget, [_, Some(tokens), _]) => format!(
                "--budget {tokens} is enough for the newest turn; --drop-first \
                 reasoning,tool_output makes it smaller"
            ),
            (ErrorCode::Trimmed, [_, _, Some(start)]) => {
                format!("the oldest stored message is {start}")
            }
            (code, _) => CallError::new(code, "").hint().to_owned(),
        }
    }
}

/// Returns `?KEY=VALUE&...` of the values that are set, or an empty text.
pub(in crate::commands) fn query(pairs: &[(&str, Option<String>)]) -> String {
    let mut text = String::new();
    for (key, value) in pairs {
        if let Some(value) = value {
            text.push(if text.is_empty() { '?' } else { '&' });
            text.push_str(&format!("{}={}", encode(key), encode(value)));
        }
    }
    text
}

/// Prints an answer of the node: unchanged as JSON, else as `human` formats it.
pub(super) fn print_answer(
    format: Format,
    answer: &[u8],
    human: impl FnOnce(&Value) -> String,
) -> Result<(), Failure> {
    if format.json {
        output::print_bytes(answer)?;
        return output::print_text("\n");
    }
    output::print_text(&human(&parse(answer)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_characters_are_encoded() {
        assert_eq!(encode("a-Z_0.~"), "a-Z_0.~");
        assert_eq!(encode("ä b/&=?"), "%C3%A4%20b%2F%26%3D%3F");
        let pairs = [
            ("last", Some("5".to_owned())),
            ("after", None),
            ("metadata.a b", Some("c&d".to_owned())),
        ];
        assert_eq!(query(&pairs), "?last=5&metadata.a%20b=c%26d");
        assert_eq!(query(&[("after", None)]), "");
    }

    #[test]
    fn a_problem_keeps_its_own_members() {
        let document = json!({
            "type": "about:blank", "title": "Precondition Failed", "status": 412,
            "code": "conflict", "detail": "the newest message is 43, not 41", "head_seq": 43,
        });
        let problem = Problem::of(document);
        assert_eq!(problem.code, ErrorCode::Conflict);
        assert_eq!(json!(problem.extra), json!({ "head_seq": 43 }));
        let failure = problem.failure(None);
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.errors[0].hints[0].contains("--expect 43"));
    }

    #[test]
    fn an_invalid_problem_is_an_internal_error() {
        let problem = Problem::of(json!("what?"));
        assert_eq!(
            (problem.code, &problem.detail[..]),
            (ErrorCode::Internal, "what?")
        );
    }
}
