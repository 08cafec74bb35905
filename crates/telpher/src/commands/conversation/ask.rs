//! The routes of the HTTP door, asked over the native one.

use std::collections::BTreeMap;

use client::{Bytes, CallError, Caller, Client, ConnectionState, Replies};
use model::{ErrorCode, Name};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::short;
use crate::commands::target::{Target, agent_name, tell_call_failure};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::serve::HTTP_AGENT;
use crate::settings::Environment;

/// A node, and who asks it.
pub(in crate::commands) struct Node {
    caller: Caller,
}

/// What is asked.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Question {
    method: &'static str,
    path: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(in crate::commands) enum Trouble {
    /// The question or its answer was lost on the way.
    Call(CallError),
    /// The node said no.
    Refused(Problem),
    /// Something on this side.
    Told(Failure),
}

/// What the node said (RFC 9457).
#[derive(Debug)]
pub(in crate::commands) struct Problem {
    pub(in crate::commands) code: ErrorCode,
    pub(in crate::commands) detail: String,
    /// Members of our own: what a program may want to know.
    pub(in crate::commands) extra: Map<String, Value>,
}

/// An answer that is good, as its pieces come.
pub(in crate::commands) struct Pieces {
    replies: Replies<String>,
}

impl Question {
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

    /// With a JSON body.
    pub(in crate::commands) fn body(mut self, body: &impl Serialize) -> Result<Self, Trouble> {
        self.body = Some(to_raw_value(body).map_err(|error| {
            Trouble::Told(Failure::new(Exit::Failed, format!("no JSON: {error}")))
        })?);
        Ok(self)
    }

    /// With JSON lines as its body.
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

    /// Whether a connection stands; waits until one does.
    pub(in crate::commands) async fn wait_for_connection(&self) -> bool {
        let is_up = |state: &ConnectionState| matches!(state, ConnectionState::Connected { .. });
        self.client().events().wait_for(is_up).await.is_some()
    }

    /// The whole of a good answer.
    pub(in crate::commands) async fn ask(&self, question: &Question) -> Result<Vec<u8>, Trouble> {
        self.open(question).await?.whole().await
    }

    /// A good answer, whose body is still to come.
    pub(in crate::commands) async fn open(&self, question: &Question) -> Result<Pieces, Trouble> {
        let question = json!(question).to_string();
        let mut pieces = Pieces {
            replies: self.caller.stream("request", question),
        };
        let head = pieces.next().await?.unwrap_or_default();
        let head = parse(&head)?;
        if (200..300).contains(&head["status"].as_u64().unwrap_or(0)) {
            return Ok(pieces);
        }
        let document = parse(&pieces.whole().await?)?;
        Err(Trouble::Refused(Problem::of(document)))
    }
}

impl Pieces {
    /// The next piece, `None` at the end.
    pub(in crate::commands) async fn next(&mut self) -> Result<Option<Bytes>, Trouble> {
        self.replies.next().await.transpose().map_err(Trouble::Call)
    }

    async fn whole(mut self) -> Result<Vec<u8>, Trouble> {
        let mut body = Vec::new();
        while let Some(piece) = self.next().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

/// An answer as JSON.
pub(in crate::commands) fn parse(bytes: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("the node's answer is not JSON: {error}");
        Failure::new(Exit::Failed, message).hint("compare the versions of the two sides")
    })
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Told(failure)
    }
}

impl Trouble {
    /// As a person reads it; for programs also as JSON on the standard output.
    pub(in crate::commands) fn tell(self, format: Format, name: Option<&Name>) -> Failure {
        match self {
            Self::Told(failure) => failure,
            Self::Call(error) => match agent_name(HTTP_AGENT) {
                Ok(agent) => tell_call_failure(format, &agent, &error),
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

    /// What to do about it.
    fn hint(&self, name: Option<&Name>) -> String {
        let name = name.map_or("NAME", short);
        let numbers = [
            self.number("head_seq"),
            self.number("tokens"),
            self.number("start_seq"),
        ];
        match (self.code, numbers) {
            (ErrorCode::NotFound, _) => format!(
                "`telpher conversation list` lists them; `telpher conversation append {name} TEXT` \
                 makes this one"
            ),
            (ErrorCode::Gone, _) => "its id is not used again: take another".to_owned(),
            (ErrorCode::Conflict, [Some(head), _, _]) => format!(
                "`telpher conversation show {name}` shows what was said meanwhile; --expect {head} \
                 accepts it"
            ),
            (ErrorCode::IdReused, _) => {
                "repeat the message exactly as it was, or give this one another --id".to_owned()
            }
            (ErrorCode::OverBudget, [_, Some(tokens), _]) => format!(
                "--budget {tokens} is enough for the newest turn; or --drop-first \
                 reasoning,tool_output"
            ),
            (ErrorCode::Trimmed, [_, _, Some(start)]) => {
                format!("the oldest message that is kept is {start}")
            }
            (code, _) => CallError::new(code, "").hint().to_owned(),
        }
    }
}

/// A text as a part of a path or a query.
pub(in crate::commands) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// `?KEY=VALUE&...` of the values that are there, or nothing.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_letter_is_encoded() {
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
    fn a_problem_keeps_what_is_our_own() {
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
    fn a_problem_that_is_none_is_a_defect() {
        let problem = Problem::of(json!("what?"));
        assert_eq!(
            (problem.code, &problem.detail[..]),
            (ErrorCode::Internal, "what?")
        );
    }
}
