//! A message of a session on its way in: read once, believed once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::message::{Header, Routed};
use crate::name::once;
use crate::session::content::Kind;
use crate::session::identity::{Bearer, Identity, Untrusted};
use crate::session::signing::{self, PAYLOAD_SIGNATURE, Signed};
use crate::wire::{Fields, Malformed};

/// The type of point-to-point sessions.
pub(super) const POINT_TO_POINT: u32 = 1;

/// See the module's documentation.
pub(super) struct Incoming<'a> {
    pub(super) header: &'a Header<'a>,
    /// Type of session, type of message, number of the session and of the message.
    session: [u32; 4],
    pub(super) content: &'a [u8],
    pub(super) metadata: Vec<(&'a str, &'a str)>,
    signature: Option<&'a [u8]>,
}

impl<'a> Incoming<'a> {
    pub(super) fn read(routed: &'a Routed<'a>) -> Result<Self, Malformed> {
        let (mut session, mut content) = (None, None);
        let mut fields = Fields::new(routed.publish_fields());
        while let Some(field) = fields.next()? {
            match field.number {
                2 => once(&mut session, &field, read_session(field.bytes()?)?)?,
                3 => once(&mut content, &field, field.bytes()?)?,
                _ => {}
            }
        }
        Ok(Self {
            header: &routed.header,
            session: session.ok_or(Malformed::Missing("session header"))?,
            content: content.unwrap_or_default(),
            metadata: read_metadata(routed.whole)?,
            signature: read_signature(routed.header_fields())?,
        })
    }

    /// What it is, if point-to-point sessions have such messages.
    pub(super) fn kind(&self) -> Option<Kind> {
        let [session_type, kind, ..] = self.session;
        Kind::from_number(kind).filter(|_| session_type == POINT_TO_POINT)
    }

    /// The number of its session.
    pub(super) fn session(&self) -> u32 {
        self.session[2]
    }

    /// Its own number.
    pub(super) fn number(&self) -> u32 {
        self.session[3]
    }

    pub(super) fn is_error(&self) -> bool {
        self.header.error == Some(true)
    }

    /// Who it is from: its token is of our secret, and a control message is signed by whom the
    /// token names. A payload's signature is checked where there is one: old libraries sign
    /// headers only.
    pub(super) fn verify(&self, us: &Identity, unix_s: u64) -> Result<Bearer<'a>, Untrusted> {
        let bearer = us.verify(self.header.identity, unix_s)?;
        if self.kind().is_some_and(Kind::is_control) {
            let key = bearer.public_key()?;
            let signature = self.signature.ok_or(Untrusted::Signature)?;
            let header = self.signed().header();
            if !signing::is_signed(&header, signature, &key) {
                return Err(Untrusted::Signature);
            }
            if let Some(signature) = self.entry(PAYLOAD_SIGNATURE) {
                let signature = STANDARD.decode(signature);
                let signature = signature.map_err(|_| Untrusted::Signature)?;
                let metadata = self.metadata.iter().copied();
                let payload = signing::payload(&header, self.content, metadata);
                if !signing::is_signed(&payload, &signature, &key) {
                    return Err(Untrusted::Signature);
                }
            }
        }
        Ok(bearer)
    }

    fn signed(&self) -> Signed<'a> {
        Signed {
            source: self.header.source,
            destination: self.header.destination,
            identity: self.header.identity,
            session: self.session,
        }
    }

    fn entry(&self, key: &str) -> Option<&'a str> {
        let mut metadata = self.metadata.iter();
        metadata
            .find(|(entry, _)| *entry == key)
            .map(|(_, value)| *value)
    }
}

fn read_session(bytes: &[u8]) -> Result<[u32; 4], Malformed> {
    let mut numbers = [None; 4];
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next()? {
        if let index @ 1..=4 = field.number {
            once(
                &mut numbers[index as usize - 1],
                &field,
                field.number()? as u32,
            )?;
        }
    }
    Ok(numbers.map(Option::unwrap_or_default))
}

fn read_metadata(message: &[u8]) -> Result<Vec<(&str, &str)>, Malformed> {
    let mut metadata: Vec<(&str, &str)> = Vec::new();
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        if field.number != 4 {
            continue;
        }
        let (mut key, mut value) = (None, None);
        let mut entry = Fields::new(field.bytes()?);
        while let Some(field) = entry.next()? {
            match field.number {
                1 => once(&mut key, &field, field.text()?)?,
                2 => once(&mut value, &field, field.text()?)?,
                _ => {}
            }
        }
        let key = key.unwrap_or_default();
        if metadata.iter().any(|(known, _)| *known == key) {
            return Err(Malformed::Twice(4));
        }
        metadata.push((key, value.unwrap_or_default()));
    }
    Ok(metadata)
}

fn read_signature(header: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let mut signature = None;
    let mut fields = Fields::new(header);
    while let Some(field) = fields.next()? {
        if field.number == 12 {
            once(&mut signature, &field, field.bytes()?)?;
        }
    }
    Ok(signature)
}
