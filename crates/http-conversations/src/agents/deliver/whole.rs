//! Complete answers of agents, appended as one message.

use std::sync::Arc;

use conversation_service::{Appended, Batch, Pending};
use http_api::Problem;
use http_api::body::parse;
use model::Name;
use node::Node;
use serde::Deserialize;
use serde::de::IgnoredAny;
use webhooks::Call;
use webhooks::caller::Response;

use super::{AnswerError, Outcome, PARTS_MAX, durable_off_thread, id_taken, next};
use crate::incoming::{Incoming, Ready};

/// Bytes allowed in an answer in addition to those of its message.
const AROUND: usize = 64 << 10;

pub(super) async fn hear(
    call: &Call,
    node: &Node,
    essence: &str,
    mut response: Response,
) -> Result<Outcome, Outcome> {
    let status = response.status;
    let conversations = node.conversations().ok_or(AnswerError::NoStorage)?;
    let size_max = conversations.options().limits.message_bytes_max + AROUND;
    let mut whole = Vec::new();
    while let Some(piece) = next(call, &mut response.body).await? {
        if whole.len() + piece.len() > size_max {
            let reason = format!("the answer is larger than {size_max} bytes");
            return Err(Outcome::wrong(status, reason));
        }
        whole.extend_from_slice(&piece);
    }
    if whole.trim_ascii().is_empty() {
        return Ok(Outcome::Later);
    }
    let text = message(essence, &whole).map_err(|reason| Outcome::wrong(status, reason))?;
    let wrong = |problem: Problem| Outcome::wrong(status, problem.detail);
    let json: Arc<str> = with_role(text).map_err(wrong)?.into();
    ready(&json).map_err(wrong)?;
    for parts in 0..PARTS_MAX {
        let answer = Answer {
            node: node.clone(),
            conversation: call.conversation().clone(),
            id: call.answer_id(parts),
            author: call.author().to_owned(),
            json: json.clone(),
        };
        match durable_off_thread(move || answer.append()).await {
            Ok(_) => return Ok(Outcome::Answered),
            Err(refusal) => {
                if let Some(outcome) = id_taken(call, refusal).await? {
                    return Ok(outcome);
                }
            }
        }
    }
    let reason = "too many parts of earlier answers exist";
    Err(Outcome::wrong(status, reason))
}

/// The answer of an agent, to be appended as a message.
struct Answer {
    node: Node,
    conversation: Name,
    id: String,
    author: String,
    /// JSON of a valid message.
    json: Arc<str>,
}

impl Answer {
    /// Appends the message. May wait for the disk.
    fn append(&self) -> Result<Pending<Appended>, AnswerError> {
        let conversations = self.node.conversations().ok_or(AnswerError::NoStorage)?;
        let ready = ready(&self.json);
        let ready = ready.map_err(AnswerError::Invalid)?;
        let mut messages = ready.messages();
        for message in &mut messages {
            message.id = Some(&self.id);
            message.from = &self.author;
        }
        let batch = Batch {
            expect: None,
            messages: &messages,
        };
        Ok(conversations.append(&self.conversation, batch)?)
    }
}

fn ready(json: &str) -> Result<Ready<'_>, Problem> {
    let message: Incoming<'_> = parse(json.as_bytes())?;
    Ready::new([message], None)
}

/// Converts an answer's body to a message in JSON, or returns the error.
fn message(essence: &str, whole: &[u8]) -> Result<String, String> {
    match (essence, whole.trim_ascii()) {
        ("application/json", json) => match json.first() {
            Some(b'"') => text_message(json),
            _ => Ok(String::from_utf8_lossy(json).into_owned()),
        },
        ("" | "text/plain", _) => {
            let text = String::from_utf8_lossy(whole);
            let mut quoted = String::new();
            json::push_string(&mut quoted, &text);
            text_message(quoted.as_bytes())
        }
        _ => Err(format!(
            "unsupported `content-type: {essence}` of the answer"
        )),
    }
}

/// Returns an assistant's message with a JSON string as its content.
fn text_message(quoted: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(quoted).map_err(|_| "the answer is not UTF-8".to_owned())?;
    Ok(format!(r#"{{"role":"assistant","content":{text}}}"#))
}

/// Detects if a message has a role.
#[derive(Deserialize)]
struct HasRole {
    #[serde(default)]
    role: Option<IgnoredAny>,
}

/// Adds the role `assistant` to a message without a role.
fn with_role(json: String) -> Result<String, Problem> {
    let found: HasRole = parse(json.as_bytes())?;
    if found.role.is_some() {
        return Ok(json);
    }
    let fields = json.trim_start().strip_prefix('{').unwrap_or_default();
    Ok(match fields.trim_start().starts_with('}') {
        true => r#"{"role":"assistant"}"#.to_owned(),
        false => format!(r#"{{"role":"assistant",{fields}"#),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_answer_without_a_role_is_an_assistant_message() {
        let check = |json: &str, expected: &str| {
            assert_eq!(with_role(json.to_owned()).unwrap(), expected);
        };
        check(
            r#"{"content":"a"}"#,
            r#"{"role":"assistant","content":"a"}"#,
        );
        check(r#" {}"#, r#"{"role":"assistant"}"#);
        check(r#"{"role":"tool"}"#, r#"{"role":"tool"}"#);
        assert!(with_role("[]".to_owned()).is_err());
        assert!(with_role("{".to_owned()).is_err());
    }
}
