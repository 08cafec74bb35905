//! A message, read where it lies: only what a node acts upon.

use std::ops::Range;

use crate::draft::Ack;
use crate::name::{Name, once};
use crate::negotiation::Negotiation;
use crate::shape::{self, check};
use crate::wire::{Field, Fields, Malformed};

/// A message of the data plane.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// From now on messages to a name come here.
    Subscribe {
        /// The name is the destination.
        header: Header<'a>,
        /// The sender's number; an answer is wanted unless it is 0.
        subscription_id: u64,
    },
    /// No longer.
    Unsubscribe {
        /// The name is the destination.
        header: Header<'a>,
        /// The number it was subscribed with.
        subscription_id: u64,
    },
    /// Goes to whoever is subscribed.
    Publish(Routed<'a>),
    /// The first message of a stream. A link message of a kind that this version does not know is
    /// `None`.
    Link(Option<Negotiation<'a>>),
    /// The answer to a subscribe or an unsubscribe.
    Ack(Ack<'a>),
}

/// A publish: its header and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub struct Routed<'a> {
    /// What was read of the header.
    pub header: Header<'a>,
    pub(crate) whole: &'a [u8],
    /// The publish in the whole, from its tag.
    pub(crate) publish: Range<usize>,
    /// The first byte behind the publish's tag and size.
    pub(crate) publish_start: usize,
    /// The header in the whole, from its tag.
    pub(crate) at: Range<usize>,
    /// The first byte behind the header's tag and size.
    pub(crate) header_start: usize,
}

/// What a node reads of a header.
#[derive(Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Who sends.
    pub source: Name<'a>,
    /// Whom it is for, or what is subscribed to.
    pub destination: Name<'a>,
    /// A token that only receivers understand.
    pub identity: &'a str,
    /// 1 for one subscriber, else all of them.
    pub fanout: u32,
    /// Hops that remain.
    pub ttl: u32,
    /// Numbers of connections that mean something to the sender alone; the MAC covers them.
    pub recv_from: Option<u64>,
    /// As `recv_from`.
    pub forward_to: Option<u64>,
    /// Whether it is the notice of a failure.
    pub error: Option<bool>,
    /// What the link's key makes of the fields above.
    pub header_mac: Option<&'a [u8]>,
    /// Fields that belong to one hop, in the header's bytes, in order.
    pub(crate) hop: [Range<usize>; 5],
    pub(crate) hop_count: usize,
}

impl<'a> Message<'a> {
    /// Reads a message.
    pub fn scan(whole: &'a [u8]) -> Result<Self, Malformed> {
        let mut found: Option<Field<'a>> = None;
        let mut fields = Fields::new(whole);
        while let Some(field) = fields.next()? {
            match field.number {
                1..=3 | 5 | 6 => once(&mut found, &field, field)?,
                4 => check(field.bytes()?, &shape::METADATA)?,
                _ => {}
            }
        }
        let field = found.ok_or(Malformed::Missing("kind"))?;
        let bytes = field.bytes()?;
        match field.number {
            1 => subscription(bytes).map(|(header, subscription_id)| Self::Subscribe {
                header,
                subscription_id,
            }),
            2 => subscription(bytes).map(|(header, subscription_id)| Self::Unsubscribe {
                header,
                subscription_id,
            }),
            3 => Routed::scan(whole, &field, bytes).map(Self::Publish),
            5 => Negotiation::scan(bytes).map(Self::Link),
            _ => Ack::scan(bytes).map(Self::Ack),
        }
    }
}

fn subscription(bytes: &[u8]) -> Result<(Header<'_>, u64), Malformed> {
    let (mut header, mut id) = (None, None);
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next()? {
        match field.number {
            1 => once(&mut header, &field, Header::scan(field.bytes()?)?)?,
            2 => once(&mut id, &field, field.number()?)?,
            _ => {}
        }
    }
    let header = header.ok_or(Malformed::Missing("header"))?;
    Ok((header, id.unwrap_or_default()))
}

impl<'a> Routed<'a> {
    fn scan(whole: &'a [u8], publish: &Field<'a>, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut header = None;
        let mut has_session = false;
        let mut fields = Fields::new(bytes);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => {
                    let read = Header::scan(field.bytes()?)?;
                    once(&mut header, &field, (read, field))?;
                }
                2 => {
                    check(field.bytes()?, &shape::SESSION)?;
                    has_session = true;
                }
                3 => check(field.bytes()?, &shape::CONTENT)?,
                _ => {}
            }
        }
        let (header, at) = header.ok_or(Malformed::Missing("header"))?;
        if !has_session {
            return Err(Malformed::Missing("session header"));
        }
        let base = publish.value_start;
        Ok(Self {
            header,
            whole,
            publish: publish.start..publish.end,
            publish_start: base,
            at: base + at.start..base + at.end,
            header_start: base + at.value_start,
        })
    }

    /// The bytes behind the header: session header, content, metadata. They are passed on as
    /// they are.
    pub fn tail_start(&self) -> usize {
        self.at.end
    }

    /// The publish's fields.
    pub(crate) fn publish_fields(&self) -> &'a [u8] {
        &self.whole[self.publish_start..self.publish.end]
    }

    /// The header's fields.
    pub(crate) fn header_fields(&self) -> &'a [u8] {
        &self.whole[self.header_start..self.at.end]
    }
}

impl<'a> Header<'a> {
    fn scan(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut read = Scan::default();
        let mut fields = Fields::new(bytes);
        while let Some(field) = fields.next()? {
            read.take(&field)?;
        }
        Ok(Self {
            source: read.source.ok_or(Malformed::Missing("source"))?,
            destination: read.destination.ok_or(Malformed::Missing("destination"))?,
            identity: read.identity.unwrap_or_default(),
            fanout: read.fanout.unwrap_or_default(),
            ttl: read.ttl.unwrap_or_default(),
            recv_from: read.recv_from,
            forward_to: read.forward_to,
            error: read.error,
            header_mac: read.header_mac,
            hop: read.hop,
            hop_count: read.hop_count,
        })
    }
}

/// The fields of a header as they are found.
#[derive(Default)]
struct Scan<'a> {
    source: Option<Name<'a>>,
    destination: Option<Name<'a>>,
    identity: Option<&'a str>,
    fanout: Option<u32>,
    ttl: Option<u32>,
    recv_from: Option<u64>,
    forward_to: Option<u64>,
    incoming: Option<u64>,
    error: Option<bool>,
    header_mac: Option<&'a [u8]>,
    hop: [Range<usize>; 5],
    hop_count: usize,
}

impl<'a> Scan<'a> {
    fn take(&mut self, field: &Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => once(&mut self.source, field, Name::read(field.bytes()?)?)?,
            2 => once(&mut self.destination, field, Name::read(field.bytes()?)?)?,
            3 => once(&mut self.identity, field, field.text()?)?,
            4 => once(&mut self.fanout, field, field.number()? as u32)?,
            5 => drop(field.text()?),
            6 => once(&mut self.ttl, field, field.number()? as u32)?,
            7 => once(&mut self.recv_from, field, field.number()?)?,
            8 => once(&mut self.forward_to, field, field.number()?)?,
            9 => once(&mut self.incoming, field, field.number()?)?,
            10 => once(&mut self.error, field, field.number()? != 0)?,
            11 => once(&mut self.header_mac, field, field.bytes()?)?,
            12 => drop(field.bytes()?),
            _ => {}
        }
        if matches!(field.number, 6..=9 | 11) {
            self.hop[self.hop_count] = field.start..field.end;
            self.hop_count += 1;
        }
        Ok(())
    }
}
