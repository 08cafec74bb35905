//! The record of a message.

use std::fmt;

use super::Malformed;
use super::bytes::{FieldReader, Put};
use crate::message::{NewMessage, Original, PartFact, PartKind, Status, Stub};

const ESTIMATED: u8 = 1;
/// Flag: the time of the original append follows the links.
const ORIGINAL: u8 = 2;
/// Flag: no message but a [`Retraction`], which follows the links and the time.
const RETRACTION: u8 = 4;
/// Position of the links in the record.
const LINKS_AT: usize = 6;
const LINKS_SIZE: usize = 24;
const FACT_SIZE: usize = 13;
/// Shift of the stub class in a fact's first byte; the lower half is the kind.
const STUB_SHIFT: u32 = 4;

/// A decoded message record. The message's number and time follow from its position in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageView<'a> {
    /// The message id.
    pub id: &'a str,
    /// The author's role.
    pub role: &'a str,
    /// The author; empty if not named.
    pub from: &'a str,
    /// The cost in tokens.
    pub tokens: u32,
    /// True if `tokens` is an estimate.
    pub is_estimated: bool,
    /// The way the message ended.
    pub status: Status,
    /// The time of the original append of an imported message, in milliseconds since 1970-01-01
    /// UTC.
    pub original_ms: Option<u64>,
    /// The retraction that takes the place of a message; `None` for a message.
    pub retraction: Option<Retraction>,
    /// The links to earlier data.
    pub links: Links,
    /// The facts, one per part.
    pub facts: Facts<'a>,
    /// The parts, as opaque bytes.
    pub parts: &'a [u8],
    /// The metadata, as opaque bytes.
    pub metadata: &'a [u8],
}

/// The links of a message: facts about the conversation at the moment of the append, known only
/// under its lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The offset of the message's event in the partition of its namespace.
    pub event: u64,
    /// Tokens of all earlier messages, retracted or not. This measure does not depend on retention or
    /// on later messages, so that windows begin at the same marks again.
    pub tokens_before: u64,
    /// The newest earlier instruction (role `system` or `developer`), 0 for none, so that it is
    /// found without reading the messages between.
    pub instruction: u64,
}

/// A retraction: the numbers from the first retracted message up to its own have no message any
/// more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retraction {
    /// The first retracted message; 0 if the record only takes the place of a retracted message in
    /// a copy.
    pub first_seq: u64,
    /// The number of retracted messages.
    pub count: u64,
}

/// Returns the retraction in a record of the stream of messages; `None` if it is a message, or
/// malformed.
pub fn retraction(record: &[u8]) -> Option<Retraction> {
    match record.get(1) {
        Some(flags) if flags & RETRACTION != 0 => MessageView::decode(record).ok()?.retraction,
        _ => None,
    }
}

impl<'a> MessageView<'a> {
    /// Returns the record of a retraction. Its id names the request.
    pub fn of_retraction(id: &'a str, retraction: Retraction) -> Self {
        Self {
            id,
            role: "",
            from: "",
            tokens: 0,
            is_estimated: false,
            status: Status::Complete,
            original_ms: None,
            retraction: Some(retraction),
            links: Links::default(),
            facts: Facts::default(),
            parts: b"",
            metadata: b"",
        }
    }

    /// Decodes a record.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "message");
        let status = rest.u8()?;
        let status = Status::from_u8(status).ok_or(rest.malformed())?;
        let flags = rest.u8()?;
        if flags & !(ESTIMATED | ORIGINAL | RETRACTION) != 0 {
            return Err(rest.malformed());
        }
        let tokens = rest.u32()?;
        let links = Links {
            event: rest.u64()?,
            tokens_before: rest.u64()?,
            instruction: rest.u64()?,
        };
        let original_ms = match flags & ORIGINAL {
            0 => None,
            _ => Some(rest.u64()?),
        };
        let retraction = match flags & RETRACTION {
            0 => None,
            _ => Some(Retraction {
                first_seq: rest.u64()?,
                count: rest.u64()?,
            }),
        };
        let id = rest.text8()?;
        let role = rest.text8()?;
        let from = rest.text16()?;
        let metadata = rest.bytes32()?;
        let count = rest.u16()?;
        let facts = Facts::new(rest.take(usize::from(count) * FACT_SIZE)?)?;
        Ok(Self {
            id,
            role,
            from,
            tokens,
            is_estimated: flags & ESTIMATED != 0,
            status,
            original_ms,
            retraction,
            links,
            facts,
            parts: rest.bytes,
            metadata,
        })
    }

    /// Returns whether a new message is a retry of this one: its id, role, author, parts and
    /// metadata are equal. Tokens and facts are derived and do not count.
    pub fn is_retried_by(&self, new: &NewMessage<'_>) -> bool {
        self.retraction.is_none()
            && new.id == Some(self.id)
            && (self.role, self.from) == (new.role, new.from)
            && self.parts == new.parts
            && self.metadata == new.metadata
    }

    /// Appends the record.
    ///
    /// # Panics
    /// If a field is longer than [`crate::Limits::check`] accepts.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Facts { bytes } = self.facts;
        put(self, bytes.len() / FACT_SIZE, out);
        out.extend_from_slice(bytes);
        out.extend_from_slice(self.parts);
    }
}

impl NewMessage<'_> {
    /// Appends the record of this message. The links may be set later ([`set_links`]).
    ///
    /// # Panics
    /// If a field is longer than [`crate::Limits::check`] accepts.
    pub fn encode(&self, id: &str, status: Status, links: Links, out: &mut Vec<u8>) {
        self.encode_original(
            id,
            Original {
                status,
                at_ms: None,
            },
            links,
            out,
        );
    }

    /// Appends the record of an imported message.
    ///
    /// # Panics
    /// If a field is longer than [`crate::Limits::check`] accepts.
    pub fn encode_original(&self, id: &str, original: Original, links: Links, out: &mut Vec<u8>) {
        let (tokens, is_estimated) = self.tokens();
        let view = MessageView {
            id,
            role: self.role,
            from: self.from,
            tokens,
            is_estimated,
            status: original.status,
            original_ms: original.at_ms,
            retraction: None,
            links,
            facts: Facts::default(),
            parts: self.parts,
            metadata: self.metadata,
        };
        put(&view, self.facts.len(), out);
        for fact in self.facts {
            put_fact(fact, out);
        }
        out.extend_from_slice(self.parts);
    }
}

/// Appends all fields before the facts.
fn put(view: &MessageView<'_>, fact_count: usize, out: &mut Vec<u8>) {
    let texts = view.id.len() + view.role.len() + view.from.len();
    out.reserve(48 + texts + view.metadata.len() + fact_count * FACT_SIZE + view.parts.len());
    out.push(view.status as u8);
    let estimated = if view.is_estimated { ESTIMATED } else { 0 };
    let original = view.original_ms.map_or(0, |_| ORIGINAL);
    let retraction = view.retraction.map_or(0, |_| RETRACTION);
    out.push(estimated | original | retraction);
    out.extend_from_slice(&view.tokens.to_le_bytes());
    out.extend_from_slice(&links_bytes(view.links));
    if let Some(original_ms) = view.original_ms {
        out.extend_from_slice(&original_ms.to_le_bytes());
    }
    if let Some(Retraction { first_seq, count }) = view.retraction {
        out.extend_from_slice(&first_seq.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
    }
    out.text8(view.id);
    out.text8(view.role);
    out.text16(view.from);
    out.bytes32(view.metadata);
    let count = u16::try_from(fact_count).expect("at most 65,535 parts were let in");
    out.extend_from_slice(&count.to_le_bytes());
}

/// Sets the links in an encoded message record.
///
/// # Panics
/// If the bytes are too short for a record.
pub fn set_links(record: &mut [u8], links: Links) {
    record[LINKS_AT..][..LINKS_SIZE].copy_from_slice(&links_bytes(links));
}

fn links_bytes(links: Links) -> [u8; LINKS_SIZE] {
    let mut bytes = [0; LINKS_SIZE];
    let numbers = [links.event, links.tokens_before, links.instruction];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// The facts about the parts of a stored message.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    /// Complete facts, each with a known kind.
    bytes: &'a [u8],
}

impl<'a> Facts<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut kinds = bytes.iter().step_by(FACT_SIZE);
        let is_known = |first: &u8| kind_of(*first).is_some();
        match kinds.all(is_known) {
            true => Ok(Self { bytes }),
            false => Err(Malformed {
                what: "fact about a part",
            }),
        }
    }

    /// Returns the number of parts.
    pub fn len(&self) -> usize {
        self.bytes.len() / FACT_SIZE
    }

    /// Returns whether there are no parts.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Iterates over the facts, in the order of the parts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = PartFact> + use<'a> {
        let (facts, _) = self.bytes.as_chunks::<FACT_SIZE>();
        facts.iter().map(|fact| {
            let [first, size @ .., _, _, _, _, _, _, _, _] = *fact;
            let [_, _, _, _, _, call @ ..] = *fact;
            PartFact {
                kind: kind_of(first).unwrap_or(PartKind::Other),
                size: u32::from_le_bytes(size),
                call: u64::from_le_bytes(call),
                stub: Stub::from_bits(first >> STUB_SHIFT),
            }
        })
    }
}

impl fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

fn kind_of(first: u8) -> Option<PartKind> {
    PartKind::from_u8(first & ((1 << STUB_SHIFT) - 1))
}

fn put_fact(fact: &PartFact, out: &mut Vec<u8>) {
    out.push(fact.kind as u8 | fact.stub.bits() << STUB_SHIFT);
    out.extend_from_slice(&fact.size.to_le_bytes());
    out.extend_from_slice(&fact.call.to_le_bytes());
}
