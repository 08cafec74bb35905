//! `Turn`: context of a decision, with the own name, the time and the output.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::session::Moment;
use crate::session::content::Kind;
use crate::session::endpoint::Decision;
use crate::session::full_name::FullName;
use crate::session::identity::Identity;
use crate::session::incoming::POINT_TO_POINT;
use crate::session::packet::Packet;
use crate::session::signing::{self, PAYLOAD_SIGNATURE, SignedFields};
use crate::session::unacked::OutgoingContent;

/// Context of a decision.
pub(super) struct Turn<'a> {
    pub(super) us: &'a FullName,
    pub(super) identity: &'a mut Identity,
    pub(super) numbers: &'a mut Numbers,
    pub(super) at: Moment,
    pub(super) out: &'a mut Vec<Decision>,
}

/// Address of a message.
#[derive(Clone, Copy)]
pub(super) struct MessageAddress<'a> {
    pub(super) peer: &'a FullName,
    /// Session number.
    pub(super) session: u32,
    pub(super) kind: Kind,
    /// Message number.
    pub(super) number: u32,
}

impl Turn<'_> {
    pub(super) fn send(&mut self, to: MessageAddress<'_>, outgoing: OutgoingContent) {
        let packet = self.packet(to, outgoing, false);
        self.out.push(Decision::Send(packet));
    }

    /// Reports that a requested message is not available.
    pub(super) fn send_missing(&mut self, to: MessageAddress<'_>, outgoing: OutgoingContent) {
        let packet = self.packet(to, outgoing, true);
        self.out.push(Decision::Send(packet));
    }

    /// Sends a control message without metadata.
    pub(super) fn control(&mut self, to: MessageAddress<'_>, content: Vec<u8>) {
        self.send(to, OutgoingContent::control(content));
    }

    fn packet(
        &mut self,
        to: MessageAddress<'_>,
        outgoing: OutgoingContent,
        is_error: bool,
    ) -> Packet {
        let identity = self.identity.token(self.at.unix_s);
        let session = [POINT_TO_POINT, to.kind as u32, to.session, to.number];
        let mut metadata = outgoing.metadata;
        let signature = to.kind.is_control().then(|| {
            let signed = SignedFields {
                source: self.us.name(),
                destination: to.peer.name(),
                identity: &identity,
                session,
            };
            let header = signed.header();
            let entries = metadata.iter().map(|(key, value)| (&key[..], &value[..]));
            let payload = signing::payload(&header, &outgoing.content, entries);
            let payload = STANDARD.encode(self.identity.sign(&payload));
            metadata.push((PAYLOAD_SIGNATURE.to_owned(), payload));
            self.identity.sign(&header)
        });
        Packet {
            source: self.us.clone(),
            destination: to.peer.clone(),
            identity,
            session,
            content: outgoing.content,
            metadata,
            signature,
            is_error,
        }
    }
}

/// Generator of unique numbers (splitmix64).
#[derive(Debug)]
pub(super) struct Numbers(u64);

/// Lowest session number reserved by the libraries.
const SESSIONS_MAX: u32 = u32::MAX - 1000;

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number for a control message, never 0.
    pub(super) fn message(&mut self) -> u32 {
        (self.next() as u32).max(1)
    }

    /// Returns a number for a session.
    pub(super) fn session(&mut self) -> u32 {
        self.next() as u32 % SESSIONS_MAX
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
