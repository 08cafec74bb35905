//! Messages decoded as by a receiver, with the field numbers of `data_plane.proto`.

use std::collections::HashMap;

use prost::{Message as _, Oneof};

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Message {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 5, 6")]
    pub(super) kind: Option<Kind>,
    #[prost(map = "string, string", tag = "4")]
    pub(super) metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Oneof)]
#[expect(clippy::large_enum_variant, reason = "one is made per test")]
pub(super) enum Kind {
    #[prost(message, tag = "1")]
    Subscribe(Subscription),
    #[prost(message, tag = "2")]
    Unsubscribe(Subscription),
    #[prost(message, tag = "3")]
    Publish(Publish),
    #[prost(message, tag = "5")]
    Link(Link),
    #[prost(message, tag = "6")]
    Ack(Ack),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Subscription {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(uint64, tag = "2")]
    pub(super) subscription_id: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Publish {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(message, optional, tag = "2")]
    pub(super) session: Option<Session>,
    #[prost(message, optional, tag = "3")]
    pub(super) content: Option<Content>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Header {
    #[prost(message, optional, tag = "1")]
    pub(super) source: Option<Name>,
    #[prost(message, optional, tag = "2")]
    pub(super) destination: Option<Name>,
    #[prost(string, tag = "3")]
    pub(super) identity: String,
    #[prost(uint32, tag = "4")]
    pub(super) fanout: u32,
    #[prost(string, tag = "5")]
    pub(super) version: String,
    #[prost(uint32, tag = "6")]
    pub(super) ttl: u32,
    #[prost(uint64, optional, tag = "7")]
    pub(super) recv_from: Option<u64>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) forward_to: Option<u64>,
    #[prost(uint64, optional, tag = "9")]
    pub(super) incoming_conn: Option<u64>,
    #[prost(bool, optional, tag = "10")]
    pub(super) error: Option<bool>,
    #[prost(bytes = "vec", optional, tag = "11")]
    pub(super) header_mac: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "12")]
    pub(super) e2e_header_sig: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Name {
    #[prost(message, optional, tag = "1")]
    pub(super) name: Option<EncodedName>,
    #[prost(message, optional, tag = "2")]
    pub(super) str_name: Option<StringName>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EncodedName {
    #[prost(uint64, tag = "1")]
    pub(super) component_0: u64,
    #[prost(uint64, tag = "2")]
    pub(super) component_1: u64,
    #[prost(uint64, tag = "3")]
    pub(super) component_2: u64,
    #[prost(message, optional, tag = "4")]
    pub(super) name_id: Option<NameId>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NameId {
    #[prost(uint64, tag = "1")]
    pub(super) id_0: u64,
    #[prost(uint64, tag = "2")]
    pub(super) id_1: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StringName {
    #[prost(string, tag = "1")]
    pub(super) str_component_0: String,
    #[prost(string, tag = "2")]
    pub(super) str_component_1: String,
    #[prost(string, tag = "3")]
    pub(super) str_component_2: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Session {
    #[prost(int32, tag = "1")]
    pub(super) session_type: i32,
    #[prost(int32, tag = "2")]
    pub(super) session_message_type: i32,
    #[prost(uint32, tag = "3")]
    pub(super) session_id: u32,
    #[prost(uint32, tag = "4")]
    pub(super) message_id: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Content {
    #[prost(message, optional, tag = "1")]
    pub(super) payload: Option<Payload>,
    /// Commands are compared by their fields.
    #[prost(message, optional, tag = "2")]
    pub(super) command: Option<Command>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Payload {
    #[prost(string, tag = "1")]
    pub(super) payload_type: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) blob: Vec<u8>,
}

/// The commands with the most fields.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Command {
    #[prost(message, optional, tag = "3")]
    pub(super) join_request: Option<JoinRequest>,
    #[prost(message, optional, tag = "7")]
    pub(super) group_update: Option<GroupUpdate>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct JoinRequest {
    #[prost(message, optional, tag = "2")]
    pub(super) channel: Option<Name>,
    #[prost(message, optional, tag = "3")]
    pub(super) control: Option<Name>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GroupUpdate {
    #[prost(int32, tag = "1")]
    pub(super) op: i32,
    #[prost(message, repeated, tag = "3")]
    pub(super) participants: Vec<Participant>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Participant {
    #[prost(message, optional, tag = "1")]
    pub(super) name: Option<Name>,
    #[prost(int32, tag = "3")]
    pub(super) status: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Link {
    #[prost(message, optional, tag = "1")]
    pub(super) negotiation: Option<Negotiation>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Negotiation {
    #[prost(string, tag = "1")]
    pub(super) link_id: String,
    #[prost(string, tag = "2")]
    pub(super) slim_version: String,
    #[prost(bool, tag = "3")]
    pub(super) is_reply: bool,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) link_ecdh_public_key: Vec<u8>,
    #[prost(int32, tag = "5")]
    pub(super) connection_type: i32,
    #[prost(string, tag = "6")]
    pub(super) node_id: String,
    #[prost(string, tag = "7")]
    pub(super) deployment_name: String,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(super) link_kem_payload: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Ack {
    #[prost(uint64, tag = "1")]
    pub(super) subscription_id: u64,
    #[prost(bool, tag = "2")]
    pub(super) success: bool,
    #[prost(string, tag = "3")]
    pub(super) error: String,
}

pub(super) fn decode(bytes: &[u8]) -> Result<Message, prost::DecodeError> {
    Message::decode(bytes)
}

/// A name with an id.
pub(super) fn name(texts: [&str; 3], id: u128) -> Name {
    let made = crate::Name::new(texts, Some(id)).encoded;
    let [component_0, component_1, component_2] = made.prefix;
    let [str_component_0, str_component_1, str_component_2] = texts.map(str::to_owned);
    Name {
        name: Some(EncodedName {
            component_0,
            component_1,
            component_2,
            name_id: made.id.map(|[id_0, id_1]| NameId { id_0, id_1 }),
        }),
        str_name: Some(StringName {
            str_component_0,
            str_component_1,
            str_component_2,
        }),
    }
}

/// A publish as a client would send it, before its MAC is computed.
pub(super) fn publish() -> Publish {
    Publish {
        header: Some(Header {
            source: Some(name(["org", "ns", "a"], 1)),
            destination: Some(name(["org", "ns", "b"], 2)),
            identity: "token".to_owned(),
            fanout: 1,
            version: "3.4.6".to_owned(),
            ttl: 8,
            header_mac: Some(vec![7; 32]),
            ..Header::default()
        }),
        session: Some(Session {
            session_type: 1,
            session_message_type: 1,
            session_id: 5,
            message_id: 1,
        }),
        content: Some(Content {
            payload: Some(Payload {
                payload_type: "msg".to_owned(),
                blob: b"hello".to_vec(),
            }),
            command: None,
        }),
    }
}

pub(super) fn encode(publish: Publish, metadata: &[(&str, &str)]) -> Vec<u8> {
    let metadata = metadata
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()));
    let message = Message {
        kind: Some(Kind::Publish(publish)),
        metadata: metadata.collect(),
    };
    message.encode_to_vec()
}
