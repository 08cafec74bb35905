//! `Incoming`: a received session message, decoded and verified once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::message::{Header, Routed};
use crate::name::set_once;
use crate::session::content::Kind;
use crate::session::identity::{Bearer, Identity, Untrusted};
use crate::session::signing::{self, PAYLOAD_SIGNATURE, SignedFields};
use crate::wire::{Fields, Malformed};

/// Session type of point-to-point sessions.
pub(super) const POINT_TO_POINT: u32 = 1;

/// A received session message.
pub(super) struct Incoming<'a> {
    pub(super) header: &'a Header<'a>,
    /// Session type, message type, session number and message number.
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
                2 => set_once(&mut session, &field, read_session(field.bytes()?)?)?,
                3 => set_once(&mut content, &field, field.bytes()?)?,
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

    /// Returns the message type if point-to-point sessions have it.
    pub(super) fn kind(&self) -> Option<Kind> {
        let [session_type, kind, ..] = self.session;
        Kind::from_number(kind).filter(|_| session_type == POINT_TO_POINT)
    }

    /// Returns the session number.
    pub(super) fn session(&self) -> u32 {
        self.session[2]
    }

    /// Returns the message number.
    pub(super) fn number(&self) -> u32 {
        self.session[3]
    }

    pub(super) fn is_error(&self) -> bool {
        self.header.error == Some(true)
    }

    /// Verifies the sender: the token must be made with our secret, and a control message must be
    /// signed with the token's key. A payload signature is verified if present; old libraries sign
    /// only headers.
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

    fn signed(&self) -> SignedFields<'a> {
        SignedFields {
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
            set_once(
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
                1 => set_once(&mut key, &field, field.text()?)?,
                2 => set_once(&mut value, &field, field.text()?)?,
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
            set_once(&mut signature, &field, field.bytes()?)?;
        }
    }
    Ok(signature)
}
