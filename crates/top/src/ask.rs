//! Asks a node for samples, by calls of its own agents.

use std::time::Duration;

use client::{Caller, Client, ConnectionState};
use console::url::encode;
use console::{Exit, Failure, call_failure, utc};
use model::Name;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::sample::{Answer, Question, Sample};

/// Time limit of a sample.
const LIMIT: Duration = Duration::from_secs(10);

/// Most messages of a mailbox, and most rows of a list of subjects.
const ROWS_MAX: usize = 1_000;

/// The node's own agents.
#[derive(Clone, Copy, Debug)]
pub struct OwnAgents {
    /// The agent for administration.
    pub system: &'static str,
    /// The agent that serves the routes of the HTTP listener.
    pub http: &'static str,
}

/// A node that is asked for samples.
#[derive(Clone)]
pub(crate) struct Node {
    system: (Name, Caller),
    http: (Name, Caller),
    start: Instant,
}

impl Node {
    pub(crate) fn new(client: &Client, agents: OwnAgents) -> Result<Self, Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, error);
        let caller = |name: &str| {
            let parsed = Name::parse(name).map_err(|error| usage(&error))?;
            let caller = client.caller(name).map_err(|error| usage(&error))?;
            Ok((parsed, caller))
        };
        Ok(Self {
            system: caller(agents.system)?,
            http: caller(agents.http)?,
            start: Instant::now(),
        })
    }

    /// Returns a sample with the metrics and the answers to questions. Fails if there are no
    /// metrics.
    pub(crate) async fn sample(&self, questions: Vec<Question>) -> Result<Sample, Failure> {
        let mut events = self.system.1.client().events();
        let is_lost = |state: &ConnectionState| {
            matches!(
                state,
                ConnectionState::Reconnecting { .. } | ConnectionState::Closed
            )
        };
        tokio::select! {
            biased;
            // A lost connection is reported at once; the client connects again by itself.
            _ = events.wait_for(is_lost) => {
                let message = "the connection to the node is lost; reconnecting";
                Err(Failure::new(Exit::Unavailable, message).hint("start the node again"))
            }
            sample = self.sample_all(questions) => sample,
            () = tokio::time::sleep(LIMIT) => {
                let seconds = LIMIT.as_secs();
                let message = format!("the node did not answer within {seconds} s");
                Err(Failure::new(Exit::Timeout, message)
                    .hint("the node is busy, or the connection to it is lost"))
            }
        }
    }

    async fn sample_all(&self, questions: Vec<Question>) -> Result<Sample, Failure> {
        let page = self.get("/metrics").await?;
        let mut sample = Sample {
            at_ms: u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX),
            unix_s: utc::now_s(),
            metrics: Metrics::parse(&String::from_utf8_lossy(&page)),
            ..Sample::default()
        };
        for question in questions {
            let answer: Answer = self.ask(&question).await.map_err(|it| it.to_string());
            sample.answers.insert(question, answer);
        }
        Ok(sample)
    }

    async fn ask(&self, question: &Question) -> Result<Value, Failure> {
        let top = |by: &str| format!("/v1/top?by={by}&count={ROWS_MAX}");
        match question {
            Question::Agents => self.call("agents", &json!(null)).await,
            Question::Connections => self.call("connections", &json!(null)).await,
            Question::Backlog => self.call("backlog", &json!(null)).await,
            Question::Topics => self.call("topics", &json!(null)).await,
            Question::Groups => self.call("groups", &json!(null)).await,
            Question::Cluster => self.call("cluster", &json!(null)).await,
            Question::Messages(name) => {
                let messages = json!({ "name": name, "from": 0, "limit": ROWS_MAX });
                self.call("messages", &messages).await
            }
            Question::Denied => parse(&self.get(&top("denied")).await?),
            Question::Taken => parse(&self.get(&top("taken")).await?),
            Question::Topic(name) => {
                parse(&self.get(&format!("/v1/topics/{}", encode(name))).await?)
            }
            Question::Subject(name) => parse(&self.get(&subject_path(name)).await?),
        }
    }

    /// Calls a method of the agent for administration.
    async fn call(&self, method: &str, request: &Value) -> Result<Value, Failure> {
        let (name, caller) = &self.system;
        let call = caller.call(method, request.to_string()).deadline(LIMIT);
        let reply = call.await.map_err(|error| call_failure(name, &error))?;
        parse(&reply)
    }

    /// Gets a path of the HTTP listener.
    async fn get(&self, path: &str) -> Result<Vec<u8>, Failure> {
        let (name, caller) = &self.http;
        let request = json!({ "method": "GET", "path": path }).to_string();
        let mut pieces = caller.stream("request", request);
        let (mut head, mut body) = (None, Vec::new());
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| call_failure(name, &error))?;
            match head {
                None => head = Some(parse(&piece)?),
                Some(_) => body.extend_from_slice(&piece),
            }
        }
        let status = head.as_ref().and_then(|head| head["status"].as_u64());
        if status.is_some_and(|status| (200..300).contains(&status)) {
            return Ok(body);
        }
        let problem = parse(&body)?;
        let detail = problem["detail"].as_str().unwrap_or("no detail");
        let code = problem["code"].as_str().unwrap_or("internal");
        let exit = code
            .parse()
            .map_or(Exit::Failed, |code: model::ErrorCode| code.into());
        Err(Failure::new(exit, format!("{code}: {detail}"))
            .hint(format!("see `telpher explain {code}`")))
    }
}

fn parse(bytes: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("the node's answer is not JSON: {error}");
        Failure::new(Exit::Failed, message).hint("compare the versions of the command and the node")
    })
}

/// Returns the path of the limits of a subject: `org/namespace/agent`, optionally with `?run=`.
fn subject_path(subject: &str) -> String {
    let (name, run) = subject.split_once("?run=").unwrap_or((subject, ""));
    let name: Vec<_> = name.split('/').map(encode).collect();
    let path = format!("/v1/quota/{}", name.join("/"));
    match run {
        "" => path,
        run => format!("{path}?run={}", encode(run)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_paths() {
        assert_eq!(subject_path("acme/x/a"), "/v1/quota/acme/x/a");
        assert_eq!(
            subject_path("acme/x/a b?run=r/1"),
            "/v1/quota/acme/x/a%20b?run=r%2F1"
        );
    }
}
