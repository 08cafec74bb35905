//! Handling of a message: it is printed, and answered if the sender waits for a reply.

use std::sync::Arc;

use client::{CallError, Envelope, Fault};
use console::{Failure, body, output};
use serde_json::{Map, Value, json};

use super::{Args, shell};

/// Prints and answers messages as the arguments say.
#[derive(Clone)]
pub(super) struct Answering {
    args: Arc<Args>,
}

/// True for a request of `telpher ping`.
pub(super) fn is_ping(envelope: &Envelope) -> bool {
    envelope.method() == model::PING_METHOD && envelope.wants_reply()
}

/// Answers a request of `telpher ping`.
pub(super) fn pong(envelope: Envelope) {
    note_undelivered(envelope.reply(""));
}

impl Answering {
    pub(super) fn new(args: Arc<Args>) -> Self {
        Self { args }
    }

    /// Prints the message, and answers it at once or by the returned future.
    pub(super) fn begin(
        &self,
        envelope: Envelope,
    ) -> Result<Option<impl Future<Output = Result<(), Failure>> + use<>>, Failure> {
        self.show(&envelope)?;
        if self.args.exec.is_some() {
            return Ok(Some(self.clone().execute(envelope)));
        }
        if self.args.echo {
            let body = envelope.body.clone();
            note_undelivered(envelope.reply(body));
        } else if envelope.delivery().is_some() {
            // A write without --exec or --echo is done once it is printed.
            note_undelivered(envelope.reply(""));
        } else if envelope.wants_reply() {
            let message = "this agent only prints messages; --echo or --exec makes it answer";
            note_undelivered(envelope.refuse(Fault::new(message)));
        }
        Ok(None)
    }

    async fn execute(self, envelope: Envelope) -> Result<(), Failure> {
        let command = self.args.exec.as_deref().unwrap_or_default();
        let outcome = shell::run(command, &envelope, self.args.timeout).await;
        match (outcome, envelope.wants_reply()) {
            (Ok(bytes), true) => note_undelivered(envelope.reply(bytes)),
            (Ok(bytes), false) => output::print_bytes(&bytes)?,
            (Err(fault), true) => {
                output::note(&fault.message);
                note_undelivered(envelope.refuse(fault));
            }
            (Err(fault), false) => output::note(&fault.message),
        }
        Ok(())
    }

    fn show(&self, envelope: &Envelope) -> Result<(), Failure> {
        if self.args.quiet {
            return Ok(());
        }
        output::print_text(&match self.args.node.format.json {
            true => format!("{}\n", describe(envelope)),
            false => sentence(envelope),
        })
    }
}

/// Notes an answer that could not be delivered, because the caller has gone.
fn note_undelivered(answered: Result<(), CallError>) {
    if let Err(error) = answered {
        output::note(&format!("not answered: {}", error.message));
    }
}

fn kind(envelope: &Envelope) -> &'static str {
    if envelope.delivery().is_some() {
        "write"
    } else if envelope.wants_reply() {
        "request"
    } else {
        "message"
    }
}

fn sentence(envelope: &Envelope) -> String {
    let kind = kind(envelope);
    let source = envelope.source().unwrap_or("an unnamed client");
    let method = match envelope.method() {
        "" => String::new(),
        method => format!(" ({})", output::one_line(method)),
    };
    let again = match envelope.delivery() {
        Some(delivery) if delivery.number > 1 => format!(", delivery {}", delivery.number),
        _ => String::new(),
    };
    let body = body::show(&envelope.body);
    format!("{kind} from {source}{method}{again}: {body}\n")
}

fn describe(envelope: &Envelope) -> Value {
    let mut value = Map::new();
    value.insert("kind".to_owned(), kind(envelope).into());
    value.insert("source".to_owned(), envelope.source().into());
    value.insert("name".to_owned(), envelope.name().into());
    value.insert("method".to_owned(), envelope.method().into());
    if let Some(delivery) = envelope.delivery() {
        value.insert("offset".to_owned(), delivery.offset.into());
        value.insert("delivery".to_owned(), delivery.number.into());
        value.insert("written_ms".to_owned(), delivery.written_ms.into());
    }
    let metadata = envelope.metadata().iter();
    let metadata: Map<String, Value> = metadata
        .filter(|(key, _)| *key != wire::SOURCE)
        .map(|(key, value)| (key.to_owned(), String::from_utf8_lossy(value).into()))
        .collect();
    value.insert("metadata".to_owned(), json!(metadata));
    body::insert(&mut value, "body", &envelope.body);
    Value::Object(value)
}
