//! Splitting of a body into JSON documents: one per line, or one per server-sent event.

/// The framing of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A document is a line (`application/jsonl`, `application/x-ndjson`).
    Lines,
    /// A document is an event (`text/event-stream`); the event `[DONE]` is the last.
    Events,
}

/// A document is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a chunk exceeds {size_max} bytes")]
pub struct TooLong {
    /// The limit, in bytes.
    pub size_max: usize,
}

/// Splits a body that arrives in any pieces into documents.
///
/// Server-sent events are read as the HTML standard says (9.2.6): lines end with CR, LF or both,
/// the `data` lines of an event are joined, comments and other fields are skipped.
#[derive(Debug)]
pub struct Splitter {
    framing: Framing,
    size_max: usize,
    /// The incomplete line.
    line: Vec<u8>,
    /// The data of the incomplete event.
    data: Option<Vec<u8>>,
    /// The last byte was a CR that ended a line: an LF after it belongs to it.
    after_return: bool,
    /// `[DONE]` was received: everything after it is ignored.
    is_done: bool,
}

/// The event after the last one of a UI message stream.
const DONE: &[u8] = b"[DONE]";

impl Splitter {
    /// Returns a splitter for documents of up to `size_max` bytes.
    pub fn new(framing: Framing, size_max: usize) -> Self {
        Self {
            framing,
            size_max,
            line: Vec::new(),
            data: None,
            after_return: false,
            is_done: false,
        }
    }

    /// Splits the next piece and passes each complete document to `each`. After an error the
    /// splitter cannot be used any more.
    pub fn feed<E: From<TooLong>>(
        &mut self,
        mut bytes: &[u8],
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(first) = bytes.first() {
            let belongs = std::mem::take(&mut self.after_return) && *first == b'\n';
            bytes = &bytes[usize::from(belongs)..];
        }
        while let Some(end) = bytes.iter().position(|byte| self.ends_line(*byte)) {
            self.hold(&bytes[..end])?;
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_return {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
            self.end_line(each)?;
        }
        self.hold(bytes)?;
        Ok(())
    }

    /// Ends the body, and with it the last line and event.
    pub fn finish<E: From<TooLong>>(
        &mut self,
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.end_line(each)?;
        match self.framing {
            Framing::Lines => Ok(()),
            Framing::Events => self.end_event(each),
        }
    }

    fn ends_line(&self, byte: u8) -> bool {
        byte == b'\n' || (byte == b'\r' && self.framing == Framing::Events)
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if self.is_done {
            return Ok(());
        }
        // The name of the field and the end of the line do not count.
        if held + bytes.len() > self.size_max + FIELD.len() + 2 {
            let size_max = self.size_max;
            return Err(TooLong { size_max });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line<E: From<TooLong>>(
        &mut self,
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.framing {
            Framing::Lines => {
                let outcome = match self.line.trim_ascii() {
                    [] => Ok(()),
                    document => give(document, self.size_max, each),
                };
                self.line.clear();
                outcome
            }
            Framing::Events if self.line.is_empty() => self.end_event(each),
            Framing::Events => {
                if let Some(value) = self.line.strip_prefix(FIELD) {
                    let value = value.strip_prefix(b" ").unwrap_or(value);
                    match &mut self.data {
                        None => self.data = Some(value.to_vec()),
                        Some(data) => {
                            // Between JSON tokens a space is the same as a line end, and a document
                            // has to be one line.
                            data.push(b' ');
                            data.extend_from_slice(value);
                        }
                    }
                }
                self.line.clear();
                Ok(())
            }
        }
    }

    fn end_event<E: From<TooLong>>(
        &mut self,
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(data) = self.data.take() else {
            return Ok(());
        };
        match data.trim_ascii() {
            [] => Ok(()),
            DONE => {
                self.is_done = true;
                Ok(())
            }
            document => give(document, self.size_max, each),
        }
    }
}

fn give<E: From<TooLong>>(
    document: &[u8],
    size_max: usize,
    each: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    if document.len() > size_max {
        return Err(TooLong { size_max }.into());
    }
    each(document)
}

/// The event field with the document.
const FIELD: &[u8] = b"data:";
