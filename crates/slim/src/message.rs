//! `Message`: decoding of the fields that a node needs, without copies.

use std::ops::Range;

use crate::ack::Ack;
use crate::name::{Name, set_once};
use crate::negotiation::Negotiation;
use crate::shape::{self, check};
use crate::wire::{Field, Fields, Malformed};

/// A message of the data plane.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Subscribes the connection to a name.
    Subscribe {
        /// Header; its destination is the name to subscribe to.
        header: Header<'a>,
        /// Number chosen by the sender; it is acknowledged unless it is 0.
        subscription_id: u64,
    },
    /// Ends a subscription.
    Unsubscribe {
        /// Header; its destination is the name of the subscription.
        header: Header<'a>,
        /// Number of the subscription.
        subscription_id: u64,
    },
    /// A message for subscribers.
    Publish(Routed<'a>),
    /// First message of a stream. `None` for an unknown kind of link message.
    Link(Option<Negotiation<'a>>),
    /// Acknowledgement of a subscribe or an unsubscribe.
    Ack(Ack<'a>),
}

/// A publish with the positions of its parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Routed<'a> {
    /// Decoded header fields.
    pub header: Header<'a>,
    pub(crate) whole: &'a [u8],
    /// Range of the publish field in `whole`, with its tag.
    pub(crate) publish: Range<usize>,
    /// Offset after the tag and size of the publish field.
    pub(crate) publish_start: usize,
    /// Range of the header field in `whole`, with its tag.
    pub(crate) at: Range<usize>,
    /// Offset after the tag and size of the header field.
    pub(crate) header_start: usize,
}

/// Header fields that a node needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Name of the sender.
    pub source: Name<'a>,
    /// Destination, or the name of a subscription.
    pub destination: Name<'a>,
    /// Identity token, opaque to nodes.
    pub identity: &'a str,
    /// 1 for one subscriber; any other number for all subscribers.
    pub fanout: u32,
    /// Remaining hops.
    pub ttl: u32,
    /// Connection number that is meaningful to the sender only; covered by the MAC.
    pub recv_from: Option<u64>,
    /// Connection number, like `recv_from`.
    pub forward_to: Option<u64>,
    /// True if the message reports a failure.
    pub error: Option<bool>,
    /// MAC of the fields above, with the link's key.
    pub header_mac: Option<&'a [u8]>,
    /// Ranges of the hop's fields in the header, in order.
    pub(crate) hop: [Range<usize>; 5],
    pub(crate) hop_count: usize,
}

impl<'a> Message<'a> {
    /// Decodes a message.
    pub fn scan(whole: &'a [u8]) -> Result<Self, Malformed> {
        let mut found: Option<Field<'a>> = None;
        let mut fields = Fields::new(whole);
        while let Some(field) = fields.next()? {
            match field.number {
                1..=3 | 5 | 6 => set_once(&mut found, &field, field)?,
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
            1 => set_once(&mut header, &field, Header::scan(field.bytes()?)?)?,
            2 => set_once(&mut id, &field, field.number()?)?,
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
                    set_once(&mut header, &field, (read, field))?;
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

    /// Returns the offset of the bytes after the header: session header, content and metadata. They
    /// are forwarded unchanged.
    pub fn tail_start(&self) -> usize {
        self.at.end
    }

    /// Returns the fields of the publish.
    pub(crate) fn publish_fields(&self) -> &'a [u8] {
        &self.whole[self.publish_start..self.publish.end]
    }

    /// Returns the fields of the header.
    pub(crate) fn header_fields(&self) -> &'a [u8] {
        &self.whole[self.header_start..self.at.end]
    }
}

impl<'a> Header<'a> {
    fn scan(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut read = HeaderFields::default();
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

/// Header fields found so far.
#[derive(Default)]
struct HeaderFields<'a> {
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

impl<'a> HeaderFields<'a> {
    fn take(&mut self, field: &Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => set_once(&mut self.source, field, Name::read(field.bytes()?)?)?,
            2 => set_once(&mut self.destination, field, Name::read(field.bytes()?)?)?,
            3 => set_once(&mut self.identity, field, field.text()?)?,
            4 => set_once(&mut self.fanout, field, field.number()? as u32)?,
            5 => drop(field.text()?),
            6 => set_once(&mut self.ttl, field, field.number()? as u32)?,
            7 => set_once(&mut self.recv_from, field, field.number()?)?,
            8 => set_once(&mut self.forward_to, field, field.number()?)?,
            9 => set_once(&mut self.incoming, field, field.number()?)?,
            10 => set_once(&mut self.error, field, field.number()? != 0)?,
            11 => set_once(&mut self.header_mac, field, field.bytes()?)?,
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
