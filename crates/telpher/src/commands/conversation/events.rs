//! A parser of server-sent events that arrive in pieces.
//!
//! It supports the part of the
//! [format](https://html.spec.whatwg.org/multipage/server-sent-events.html) that the node writes:
//! fields with one blank after the colon, comments, and lines that end with a line feed.

/// A server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct Event {
    /// The position after the event.
    pub(in crate::commands) id: String,
    /// The type of the event.
    pub(in crate::commands) kind: String,
    /// The data of the event, as JSON.
    pub(in crate::commands) data: String,
}

/// Splits bytes into events.
#[derive(Debug, Default)]
pub(in crate::commands) struct Reader {
    /// An incomplete line.
    rest: Vec<u8>,
    /// An incomplete event.
    event: Event,
}

impl Reader {
    /// Adds a piece and returns the events that it completes.
    pub(in crate::commands) fn feed(&mut self, piece: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                events.extend(self.line(&String::from_utf8_lossy(&line[..line.len() - 1])));
            }
        }
        events
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return (!event.kind.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(": ").unwrap_or((line, ""));
        match field {
            "id" => self.event.id = value.to_owned(),
            "event" => self.event.kind = value.to_owned(),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // A comment, or a field that a later version added.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "id: 1\nevent: message\ndata: {\"a\":\ndata: 1}\n\n:\n\nevent: head\ndata: {}\n\n";

    fn expected() -> [Event; 2] {
        let event = |id: &str, kind: &str, data: &str| Event {
            id: id.to_owned(),
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        [
            event("1", "message", "{\"a\":\n1}"),
            event("", "head", "{}"),
        ]
    }

    #[test]
    fn events_are_parsed_from_pieces_of_any_size() {
        for size in 1..=TEXT.len() {
            let mut reader = Reader::default();
            let pieces = TEXT.as_bytes().chunks(size);
            let events: Vec<_> = pieces.flat_map(|piece| reader.feed(piece)).collect();
            assert_eq!(events, expected(), "pieces of {size}");
        }
    }

    #[test]
    fn an_incomplete_event_is_not_returned() {
        let mut reader = Reader::default();
        assert_eq!(reader.feed(b"event: head\ndata: {}\n"), []);
        assert_eq!(reader.feed(b"\n").len(), 1);
    }
}
