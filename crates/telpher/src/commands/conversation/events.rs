//! Server-sent events, as they come in pieces.
//!
//! Of the [format](https://html.spec.whatwg.org/multipage/server-sent-events.html) what the node
//! writes: fields with one blank behind the colon, comments, lines that end with a line feed.

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct Event {
    /// Where the reader has arrived with it.
    pub(in crate::commands) id: String,
    /// What kind of thing.
    pub(in crate::commands) kind: String,
    /// About it: JSON.
    pub(in crate::commands) data: String,
}

/// Cuts bytes into events.
#[derive(Debug, Default)]
pub(in crate::commands) struct Reader {
    /// A line that has no end yet.
    rest: Vec<u8>,
    /// An event that has no end yet.
    event: Event,
}

impl Reader {
    /// Takes a piece; hands out the events that end in it.
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
            // A comment, or a field of a later version.
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
    fn events_come_out_however_they_are_cut() {
        for size in 1..=TEXT.len() {
            let mut reader = Reader::default();
            let pieces = TEXT.as_bytes().chunks(size);
            let events: Vec<_> = pieces.flat_map(|piece| reader.feed(piece)).collect();
            assert_eq!(events, expected(), "pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_its_end_is_none() {
        let mut reader = Reader::default();
        assert_eq!(reader.feed(b"event: head\ndata: {}\n"), []);
        assert_eq!(reader.feed(b"\n").len(), 1);
    }
}
