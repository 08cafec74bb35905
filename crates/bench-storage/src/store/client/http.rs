//! Conversations over HTTP.

use hyper::{Method, StatusCode};
use serde::Deserialize;

use super::{AppendAck, AppendFailure, OutgoingMessage, StoredMessage};
use crate::store::http::{Answer, Connection};
use crate::store::message;
use bench::workload::role::Failure;

/// Messages per page.
const PAGE: u64 = 1_000;

pub(in crate::store) struct Client {
    connection: Connection,
}

#[derive(Deserialize)]
struct AppendedDocument {
    first_seq: u64,
    last_seq: u64,
    deduplicated: u64,
}

#[derive(Deserialize)]
struct PageDocument {
    messages: Vec<MessageDocument>,
}

#[derive(Deserialize)]
struct MessageDocument {
    seq: u64,
    id: String,
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    text: String,
}

#[derive(Deserialize)]
struct Problem {
    code: String,
}

impl Client {
    pub(super) async fn open(address: &str) -> Result<Self, Failure> {
        Ok(Self {
            connection: Connection::open(address).await?,
        })
    }

    pub(super) async fn append(
        &mut self,
        conversation: &str,
        messages: &[OutgoingMessage],
    ) -> Result<AppendAck, AppendFailure> {
        let messages: Vec<_> = messages
            .iter()
            .map(|one| message::message(&one.id, &one.text))
            .collect();
        let body = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
        let path = message::path(conversation);
        match self
            .connection
            .send(Method::POST, &path, "application/json", body)
            .await
        {
            Ok(answer) => acked(&answer),
            Err(lost) => Err(AppendFailure::Unconfirmed(lost.to_string())),
        }
    }

    pub(super) async fn read(
        &mut self,
        conversation: &str,
        after: u64,
    ) -> Result<Vec<StoredMessage>, Failure> {
        let path = format!("{}?after={after}&limit={PAGE}", message::path(conversation));
        let answer = self
            .connection
            .send(Method::GET, &path, "application/json", "")
            .await?;
        page(&answer)
    }
}

fn acked(answer: &Answer) -> Result<AppendAck, AppendFailure> {
    if answer.status.is_success() {
        let document = serde_json::from_slice::<AppendedDocument>(&answer.body);
        let document = document.map_err(|error| AppendFailure::Refused(error.to_string()))?;
        return Ok(AppendAck {
            first_seq: document.first_seq,
            last_seq: document.last_seq,
            deduplicated: document.deduplicated,
        });
    }
    match serde_json::from_slice::<Problem>(&answer.body) {
        Ok(problem) if problem.code == "unconfirmed" => {
            Err(AppendFailure::Unconfirmed(problem.code))
        }
        Ok(problem) => Err(AppendFailure::Refused(problem.code)),
        Err(_) => Err(AppendFailure::Refused(answer.status.to_string())),
    }
}

fn page(answer: &Answer) -> Result<Vec<StoredMessage>, Failure> {
    match answer.status {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Ok(Vec::new()),
        status => return Err(format!("a page cannot be read: {status}").into()),
    }
    let page: PageDocument = serde_json::from_slice(&answer.body)?;
    let stored = |one: MessageDocument| StoredMessage {
        seq: one.seq,
        id: one.id,
        text: one
            .parts
            .into_iter()
            .next()
            .map_or_else(String::new, |part| part.text),
    };
    Ok(page.messages.into_iter().map(stored).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            body: body.into(),
        }
    }

    #[test]
    fn acks_refusals_and_unknown_outcomes_are_distinguished() {
        let document =
            r#"{"first_seq":4,"last_seq":5,"head_seq":5,"deduplicated":2,"messages":[]}"#;
        let expected = AppendAck {
            first_seq: 4,
            last_seq: 5,
            deduplicated: 2,
        };
        assert_eq!(acked(&answer(200, document)), Ok(expected));
        let refused = acked(&answer(409, r#"{"code":"id_reused","title":"no"}"#));
        assert_eq!(refused, Err(AppendFailure::Refused("id_reused".to_owned())));
        let unknown = acked(&answer(503, r#"{"code":"unconfirmed"}"#));
        assert_eq!(
            unknown,
            Err(AppendFailure::Unconfirmed("unconfirmed".to_owned()))
        );
        assert!(matches!(
            acked(&answer(502, "")),
            Err(AppendFailure::Refused(_))
        ));
        assert!(matches!(
            acked(&answer(201, "{}")),
            Err(AppendFailure::Refused(_))
        ));
    }

    #[test]
    fn an_absent_conversation_has_an_empty_page() {
        let text = r#"{"messages":[{"seq":7,"id":"m-1","role":"user","parts":[{"type":"text","text":"hi"}]}],
            "head_seq":7,"start_seq":1}"#;
        let stored = StoredMessage {
            seq: 7,
            id: "m-1".to_owned(),
            text: "hi".to_owned(),
        };
        assert_eq!(page(&answer(200, text)).unwrap(), [stored]);
        assert_eq!(page(&answer(404, "{}")).unwrap(), []);
        assert!(page(&answer(410, "{}")).is_err());
    }
}
