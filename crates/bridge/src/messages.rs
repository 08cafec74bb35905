//! Conversion between SLIM messages and native messages.

use client::{CallError, Envelope, Fault, Metadata};
use model::ErrorCode;
use slim::session::{FullName, Received};

/// Metadata entries of SLIM messages with a meaning for the bridge.
const METHOD: &str = "telpher-method";
const ONE_WAY: &str = "telpher-one-way";
const ERROR: &str = "telpher-error";
const SOURCE: &str = "telpher-source";
const OURS: &str = "telpher-";

/// Prefixes of metadata entries that are reserved by SLIM's libraries.
const THEIRS: [&str; 2] = ["slim-", "PUBLISH_TO"];

/// The metadata entry of a native message with the SLIM name of its sender.
const SLIM_SOURCE: &str = "slim-source";

/// The default payload type of SLIM applications.
const MESSAGE: &str = "msg";

/// Maximum payload size in bytes. Nodes and applications accept messages of 4 MiB by default; the
/// difference is for the header and for metadata, of which a native message has at most 64 KiB.
pub(super) const PAYLOAD_SIZE_MAX: usize = (4 << 20) - (80 << 10);

/// The error message for a larger payload.
pub(super) const TOO_LARGE: &str = "the payload exceeds the maximum size of a SLIM message";

/// The parts of a request that its answer needs.
#[derive(Clone)]
pub(super) struct ReplyContext {
    payload_type: String,
    /// The metadata that the answer repeats.
    metadata: Vec<(String, String)>,
}

fn entry<'a>(message: &'a Received, key: &str) -> Option<&'a str> {
    let mut metadata = message.metadata.iter();
    let found = metadata.find(|(entry, _)| entry == key);
    found.map(|(_, value)| value.as_str())
}

/// Returns the method that an application calls.
pub(super) fn method(message: &Received) -> &str {
    entry(message, METHOD).unwrap_or_default()
}

/// True if an application wants no answer.
pub(super) fn is_one_way(message: &Received) -> bool {
    entry(message, ONE_WAY) == Some("true")
}

/// Returns the metadata for an agent: the application's own entries, and its SLIM name.
pub(super) fn to_agent(message: &Received, source: Option<&FullName>) -> Metadata {
    let metadata = own(message).filter(|(key, _)| key != wire::SOURCE);
    let native = metadata.fold(Metadata::new(), |metadata, (key, value)| {
        metadata.with(key, value)
    });
    match source {
        Some(source) => native.with(SLIM_SOURCE, source.to_string()),
        None => native,
    }
}

/// Returns the metadata entries of the application itself, without reserved ones.
fn own(message: &Received) -> impl Iterator<Item = &(String, String)> {
    message.metadata.iter().filter(|(key, _)| {
        let is_reserved = |start: &str| key.starts_with(start);
        !is_reserved(OURS) && !THEIRS.into_iter().any(is_reserved)
    })
}

impl ReplyContext {
    pub(super) fn new(message: &Received) -> Self {
        Self {
            payload_type: message.payload_type.clone(),
            metadata: own(message).cloned().collect(),
        }
    }

    /// Converts an outcome to an answer.
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

/// Converts a message of an agent to one for an application.
pub(super) fn to_application(envelope: &Envelope) -> Received {
    let text = |value: &[u8]| std::str::from_utf8(value).ok().map(str::to_owned);
    let entries = envelope.metadata().iter();
    let mut metadata: Vec<_> = entries
        .filter(|(key, _)| *key != wire::SOURCE && !key.starts_with(OURS))
        .filter(|(key, _)| !THEIRS.into_iter().any(|start| key.starts_with(start)))
        .filter_map(|(key, value)| Some((key.to_owned(), text(value)?)))
        .collect();
    // Of duplicate entries only the first is kept.
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

/// True if the message is an error in place of a reply.
pub(super) fn is_error(message: &Received) -> bool {
    entry(message, ERROR).is_some()
}

/// Converts a message of an application to a reply or an error.
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
    fn bridged_request_carries_application_metadata_and_the_slim_source() {
        let request = message(&[
            ("colour", "red"),
            ("source", "somebody/else"),
            ("slim-payload-sig", "x"),
            ("telpher-method", "sums"),
            ("slim-source", "somebody/else"),
        ]);
        let source = FullName::new(["org", "ns", "app"], None);
        let native = to_agent(&request, Some(&source));
        let native: Vec<_> = native.iter().map(|(key, _)| key).collect();
        assert_eq!(native, ["colour", "slim-source"]);
        let native = to_agent(&request, Some(&source));
        assert_eq!(native.text("slim-source"), Some("org/ns/app"));
        assert_eq!(method(&request), "sums");
        assert!(!is_one_way(&request));
    }

    #[test]
    fn an_answer_repeats_metadata_and_an_error_has_a_code() {
        let request = message(&[("number", "7"), ("telpher-error", "forged")]);
        let answer = ReplyContext::new(&request).answer(Ok("done".into()));
        assert_eq!(answer.payload, "done");
        assert_eq!(answer.payload_type, "text/plain");
        assert_eq!(answer.metadata, message(&[("number", "7")]).metadata);
        let error = CallError::new(ErrorCode::Busy, "later");
        let answer = ReplyContext::new(&request).answer(Err(error));
        assert_eq!(answer.payload, "later");
        let metadata = [("number", "7"), ("telpher-error", "busy")];
        assert_eq!(answer.metadata, message(&metadata).metadata);
        let large = vec![0; PAYLOAD_SIZE_MAX + 1];
        let answer = ReplyContext::new(&request).answer(Ok(large.into()));
        assert_eq!(answer.payload, TOO_LARGE);
        let metadata = [("number", "7"), ("telpher-error", "too_large")];
        assert_eq!(answer.metadata, message(&metadata).metadata);
    }

    #[test]
    fn a_message_with_an_error_entry_is_an_error() {
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
