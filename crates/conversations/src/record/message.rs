//! A message as it is kept.

use std::fmt;

use super::Malformed;
use super::bytes::{Put, Rest};
use crate::message::{NewMessage, Original, PartFact, PartKind, Status, Stub};

const ESTIMATED: u8 = 1;
/// When it was written follows the links.
const ORIGINAL: u8 = 2;
/// Where the links are in the record.
const LINKS_AT: usize = 6;
const LINKS_SIZE: usize = 24;
const FACT_SIZE: usize = 13;
/// Of a fact's first byte the lower half is the kind, the upper half the class of the stub.
const STUB_SHIFT: u32 = 4;

/// A message as it is kept. Its number and its time are its place in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageView<'a> {
    /// What everybody calls it.
    pub id: &'a str,
    /// What its author is in the conversation.
    pub role: &'a str,
    /// Who wrote it, empty for nobody in particular.
    pub from: &'a str,
    /// What it costs a model.
    pub tokens: u32,
    /// Whether that is an estimate.
    pub is_estimated: bool,
    /// How it ended.
    pub status: Status,
    /// When it was first appended, in milliseconds since 1970-01-01 UTC, if that was elsewhere.
    pub original_ms: Option<u64>,
    /// What was there when it was appended.
    pub links: Links,
    /// One for each part.
    pub facts: Facts<'a>,
    /// The parts, opaque.
    pub parts: &'a [u8],
    /// Opaque.
    pub metadata: &'a [u8],
}

/// What was there when a message was appended: known only then, under the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The offset of its event in the partition of its namespace.
    pub event: u64,
    /// Tokens of all messages before it: a measure that does not change with the end or the start of
    /// the conversation, so that windows can be cut at the same places again.
    pub tokens_before: u64,
    /// The newest message before it that instructs (of the role `system` or `developer`), 0 for none:
    /// found without reading what lies between.
    pub instruction: u64,
}

impl<'a> MessageView<'a> {
    /// Reads a record back.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "message");
        let status = rest.u8()?;
        let status = Status::from_u8(status).ok_or(rest.malformed())?;
        let flags = rest.u8()?;
        if flags & !(ESTIMATED | ORIGINAL) != 0 {
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
            links,
            facts,
            parts: rest.bytes,
            metadata,
        })
    }

    /// Whether a retry of that message would be this one: what its author said is the same.
    /// Tokens and facts are derived and do not count.
    pub fn is_retried_by(&self, new: &NewMessage<'_>) -> bool {
        new.id == Some(self.id)
            && (self.role, self.from) == (new.role, new.from)
            && self.parts == new.parts
            && self.metadata == new.metadata
    }

    /// Appends the record.
    ///
    /// # Panics
    /// When a piece is longer than [`crate::Limits::check`] lets in.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Facts { bytes } = self.facts;
        put(self, bytes.len() / FACT_SIZE, out);
        out.extend_from_slice(bytes);
        out.extend_from_slice(self.parts);
    }
}

impl NewMessage<'_> {
    /// Appends the record of this message under that id. The links may be said later
    /// ([`set_links`]).
    ///
    /// # Panics
    /// When a piece is longer than [`crate::Limits::check`] lets in.
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

    /// The same of a message that was first appended elsewhere.
    ///
    /// # Panics
    /// When a piece is longer than [`crate::Limits::check`] lets in.
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

/// Everything before the facts.
fn put(view: &MessageView<'_>, fact_count: usize, out: &mut Vec<u8>) {
    let texts = view.id.len() + view.role.len() + view.from.len();
    out.reserve(48 + texts + view.metadata.len() + fact_count * FACT_SIZE + view.parts.len());
    out.push(view.status as u8);
    let estimated = if view.is_estimated { ESTIMATED } else { 0 };
    let original = view.original_ms.map_or(0, |_| ORIGINAL);
    out.push(estimated | original);
    out.extend_from_slice(&view.tokens.to_le_bytes());
    out.extend_from_slice(&links_bytes(view.links));
    if let Some(original_ms) = view.original_ms {
        out.extend_from_slice(&original_ms.to_le_bytes());
    }
    out.text8(view.id);
    out.text8(view.role);
    out.text16(view.from);
    out.bytes32(view.metadata);
    let count = u16::try_from(fact_count).expect("at most 65,535 parts were let in");
    out.extend_from_slice(&count.to_le_bytes());
}

/// Says the links of a message whose record stands already.
///
/// # Panics
/// When the bytes are no record.
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

/// The facts about the parts of a message that is kept.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    /// Whole facts, each of a known kind.
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

    /// How many parts there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / FACT_SIZE
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// In the order of the parts.
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
