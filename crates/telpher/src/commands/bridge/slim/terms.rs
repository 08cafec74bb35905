//! What the two worlds call the same thing.

use client::{CallError, Envelope, Fault, Metadata};
use model::ErrorCode;
use slim::session::{FullName, Received};

/// Entries of a SLIM message's metadata that mean something here.
const METHOD: &str = "telpher-method";
const ONE_WAY: &str = "telpher-one-way";
const ERROR: &str = "telpher-error";
const SOURCE: &str = "telpher-source";
const OURS: &str = "telpher-";

/// Entries that SLIM's libraries keep for themselves.
const THEIRS: [&str; 2] = ["slim-", "PUBLISH_TO"];

/// The entry of a native message's metadata that has the SLIM name of its sender.
const SLIM_SOURCE: &str = "slim-source";

/// What applications call a message unless they say otherwise.
const MESSAGE: &str = "msg";

/// Nodes and applications take messages of 4 MiB, unless they are told otherwise; the rest is for
/// the header and for metadata, of which a native message has 64 KiB at most.
pub(super) const PAYLOAD_SIZE_MAX: usize = (4 << 20) - (80 << 10);

/// What is said of more.
pub(super) const TOO_LARGE: &str = "it is larger than a SLIM message may be";

/// What is known of a message once its payload has been given away.
#[derive(Clone)]
pub(super) struct Asked {
    payload_type: String,
    /// What the answer repeats.
    metadata: Vec<(String, String)>,
}

fn entry<'a>(message: &'a Received, key: &str) -> Option<&'a str> {
    let mut metadata = message.metadata.iter();
    let found = metadata.find(|(entry, _)| entry == key);
    found.map(|(_, value)| value.as_str())
}

/// The method that an application calls.
pub(super) fn method(message: &Received) -> &str {
    entry(message, METHOD).unwrap_or_default()
}

/// Whether an application wants no answer.
pub(super) fn is_one_way(message: &Received) -> bool {
    entry(message, ONE_WAY) == Some("true")
}

/// What an agent is told beside the body: the application's own entries, and who it is.
pub(super) fn to_agent(message: &Received, source: Option<&FullName>) -> Metadata {
    let metadata = own(message).filter(|(key, _)| key != wire::SOURCE);
    let told = metadata.fold(Metadata::new(), |told, (key, value)| told.with(key, value));
    match source {
        Some(source) => told.with(SLIM_SOURCE, source.to_string()),
        None => told,
    }
}

/// The entries that are the application's own.
fn own(message: &Received) -> impl Iterator<Item = &(String, String)> {
    message.metadata.iter().filter(|(key, _)| {
        let is_reserved = |start: &str| key.starts_with(start);
        !is_reserved(OURS) && !THEIRS.into_iter().any(is_reserved)
    })
}

impl Asked {
    pub(super) fn new(message: &Received) -> Self {
        Self {
            payload_type: message.payload_type.clone(),
            metadata: own(message).cloned().collect(),
        }
    }

    /// The answer.
    pub(super) fn answer(self, outcome: Result<bytes::Bytes, CallError>) -> Received {
        let (payload, error) = match outcome {
            Ok(reply) if reply.len() > PAYLOAD_SIZE_MAX => {
                (TOO_LARGE.into(), Some(ErrorCode::TooLarge))
            }
            Ok(reply) => (reply, None),
            Err(error) => (error.message.clone().into(), Some(error.code)),
        };
        let mut metadata = self.metadata;
        metadata.extend(error.map(|code| (ERROR.to_owned(), code.as_str().to_owned())));
        Received {
            payload,
            payload_type: self.payload_type,
            metadata,
        }
    }
}

/// What an application is sent for what an agent sent.
pub(super) fn to_application(envelope: &Envelope) -> Received {
    let text = |value: &[u8]| std::str::from_utf8(value).ok().map(str::to_owned);
    let entries = envelope.metadata().iter();
    let mut metadata: Vec<_> = entries
        .filter(|(key, _)| *key != wire::SOURCE && !key.starts_with(OURS))
        .filter(|(key, _)| !THEIRS.into_iter().any(|start| key.starts_with(start)))
        .filter_map(|(key, value)| Some((key.to_owned(), text(value)?)))
        .collect();
    // What stands there twice is read by nobody.
    metadata.sort();
    metadata.dedup_by(|later, first| later.0 == first.0);
    if let Some(source) = envelope.source() {
        metadata.push((SOURCE.to_owned(), source.to_owned()));
    }
    if !envelope.method().is_empty() {
        metadata.push((METHOD.to_owned(), envelope.method().to_owned()));
    }
    Received {
        payload: envelope.body.clone(),
        payload_type: MESSAGE.to_owned(),
        metadata,
    }
}

/// Whether it is an error where a reply was due.
pub(super) fn is_error(message: &Received) -> bool {
    entry(message, ERROR).is_some()
}

/// What an application answered, if it is no error.
pub(super) fn outcome(message: Received) -> Result<bytes::Bytes, Fault> {
    match entry(&message, ERROR) {
        None => Ok(message.payload),
        Some(code) => {
            let code = code.parse().unwrap_or(ErrorCode::HandlerError);
            let text = String::from_utf8_lossy(&message.payload);
            Err(Fault::with_code(code, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(metadata: &[(&str, &str)]) -> Received {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Received {
            payload: "said".into(),
            payload_type: "text/plain".to_owned(),
            metadata: metadata.iter().map(owned).collect(),
        }
    }

    #[test]
    fn an_agent_is_told_what_is_the_applications_own_and_who_it_is() {
        let asked = message(&[
            ("colour", "red"),
            ("source", "somebody/else"),
            ("slim-payload-sig", "x"),
            ("telpher-method", "sums"),
            ("slim-source", "somebody/else"),
        ]);
        let source = FullName::new(["org", "ns", "app"], None);
        let told = to_agent(&asked, Some(&source));
        let told: Vec<_> = told.iter().map(|(key, _)| key).collect();
        assert_eq!(told, ["colour", "slim-source"]);
        let told = to_agent(&asked, Some(&source));
        assert_eq!(told.text("slim-source"), Some("org/ns/app"));
        assert_eq!(method(&asked), "sums");
        assert!(!is_one_way(&asked));
    }

    #[test]
    fn an_answer_repeats_what_it_answers_and_an_error_says_that_it_is_one() {
        let asked = message(&[("number", "7"), ("telpher-error", "forged")]);
        let answer = Asked::new(&asked).answer(Ok("done".into()));
        assert_eq!(answer.payload, "done");
        assert_eq!(answer.payload_type, "text/plain");
        assert_eq!(answer.metadata, message(&[("number", "7")]).metadata);
        let error = CallError::new(ErrorCode::Busy, "later");
        let answer = Asked::new(&asked).answer(Err(error));
        assert_eq!(answer.payload, "later");
        let metadata = [("number", "7"), ("telpher-error", "busy")];
        assert_eq!(answer.metadata, message(&metadata).metadata);
        let large = vec![0; PAYLOAD_SIZE_MAX + 1];
        let answer = Asked::new(&asked).answer(Ok(large.into()));
        assert_eq!(answer.payload, TOO_LARGE);
        let metadata = [("number", "7"), ("telpher-error", "too_large")];
        assert_eq!(answer.metadata, message(&metadata).metadata);
    }

    #[test]
    fn what_an_application_says_is_a_reply_or_an_error() {
        assert_eq!(outcome(message(&[("number", "7")])).unwrap(), "said");
        for (code, expected) in [
            ("denied", ErrorCode::Denied),
            ("no code of ours", ErrorCode::HandlerError),
        ] {
            let fault = outcome(message(&[("telpher-error", code)])).unwrap_err();
            assert_eq!((fault.code, fault.message.as_str()), (expected, "said"));
        }
    }
}
