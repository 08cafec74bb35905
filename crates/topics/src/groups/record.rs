//! The records of consumer groups in their stream, byte by byte.
//!
//! There are six kinds of records; the tag of the stream record tells them apart. All numbers are
//! little-endian. A layout is never changed: a new layout gets a new tag. `text` and `bytes` are a
//! length (u16, u32) followed by the content; `name?` is a u8, 0 for none, or 1 and a text; a
//! `list` is its count (u32) and its elements.
//!
//! ```text
//! 1 GROUP      group text | since_ms u64 | generation i32 | protocol_type text | protocol name?
//!              | leader name? | members list of
//!                (member text | instance name? | client_id text | client_host text
//!                | session_timeout_ms u32 | rebalance_timeout_ms u32
//!                | protocols list of (name text | metadata bytes)
//!                | topics u8 (0 not known, 1) list of text | assignment bytes)
//! 2 COMMITTED  group text | committed_ms u64 | expires_ms u64 (u64::MAX: when the group's time is
//!              over) | marks list of
//!                (topic text | partition u32 | offset i64 | leader_epoch i32 | metadata text)
//! 3 PENDING    producer i64 | COMMITTED
//! 4 ENDED      group text | producer i64 | ending u8 (0 aborted, 1 committed)
//! 5 FORGOTTEN  group text | partitions list of (topic text | partition u32)
//! 6 GONE       group text
//! ```
//!
//! A later GROUP replaces an earlier one, a later mark of a partition an earlier one. A PENDING
//! mark becomes valid at its ENDED, unless a COMMITTED mark of that partition follows it. GONE
//! removes everything of a group.

use std::sync::Arc;

use super::member::Profile;
use super::terms::Protocol;
use crate::bytes::{Put, Rest};
use crate::record::Malformed;
use crate::{Ending, ProducerId};

const GROUP: u8 = 1;
const COMMITTED: u8 = 2;
const PENDING: u8 = 3;
const ENDED: u8 = 4;
const FORGOTTEN: u8 = 5;
const GONE: u8 = 6;

/// A change of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A rebalance has ended, or a member was replaced.
    Group(Snapshot),
    /// Offsets were committed.
    Committed(Marks),
    /// Offsets were committed in a transaction.
    Pending {
        /// The transaction's producer.
        producer: ProducerId,
        /// The offsets, valid once it is committed.
        marks: Marks,
    },
    /// A transaction has ended.
    Ended {
        /// The group.
        group: Arc<str>,
        /// The transaction's producer.
        producer: ProducerId,
        /// The end of the transaction: commit or abort.
        ending: Ending,
    },
    /// Offsets were deleted or have expired.
    Forgotten {
        /// The group.
        group: Arc<str>,
        /// Topics and partitions.
        partitions: Vec<(Box<str>, u32)>,
    },
    /// A group was deleted or has expired.
    Gone {
        /// The group.
        group: Arc<str>,
    },
}

/// The state of a group between two rebalances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The name of the group.
    pub group: Arc<str>,
    /// Since when it has this state, in milliseconds since 1970-01-01 UTC.
    pub since_ms: u64,
    /// The generation.
    pub generation: i32,
    /// The protocol type of all members.
    pub protocol_type: Box<str>,
    /// The chosen protocol, if there are members.
    pub protocol: Option<Box<str>>,
    /// The leader, if there are members.
    pub leader: Option<Arc<str>>,
    /// The members, by id.
    pub members: Vec<(Arc<str>, Profile)>,
}

/// Offsets that were committed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The group.
    pub group: Arc<str>,
    /// When they were committed, in milliseconds since 1970-01-01 UTC.
    pub committed_ms: u64,
    /// When they expire, if the client set it.
    pub expires_ms: Option<u64>,
    /// The marks, one for each partition.
    pub marks: Vec<MarkKept>,
}

/// An owned [`super::Mark`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkKept {
    /// The topic.
    pub topic: Box<str>,
    /// The index of the partition.
    pub partition: u32,
    /// The offset of the next record to read.
    pub offset: i64,
    /// The leader epoch of the last record that was read, -1 if unknown.
    pub leader_epoch: i32,
    /// The client's own text.
    pub metadata: Box<str>,
}

impl Record {
    /// Returns the group.
    pub fn group(&self) -> &Arc<str> {
        match self {
            Self::Group(Snapshot { group, .. })
            | Self::Committed(Marks { group, .. })
            | Self::Pending {
                marks: Marks { group, .. },
                ..
            }
            | Self::Ended { group, .. }
            | Self::Forgotten { group, .. }
            | Self::Gone { group } => group,
        }
    }

    /// Returns the tag of the stream record.
    pub fn tag(&self) -> u8 {
        match self {
            Self::Group(_) => GROUP,
            Self::Committed(_) => COMMITTED,
            Self::Pending { .. } => PENDING,
            Self::Ended { .. } => ENDED,
            Self::Forgotten { .. } => FORGOTTEN,
            Self::Gone { .. } => GONE,
        }
    }

    /// Appends its bytes.
    ///
    /// # Panics
    /// If a part is longer than its length field allows: the engine checks sizes before.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Self::Pending { producer, .. } = self {
            out.put(producer.0.to_le_bytes());
        }
        out.text(self.group());
        match self {
            Self::Group(snapshot) => put_snapshot(snapshot, out),
            Self::Committed(marks) | Self::Pending { marks, .. } => put_marks(marks, out),
            Self::Ended {
                producer, ending, ..
            } => {
                out.put(producer.0.to_le_bytes());
                out.push(u8::from(*ending == Ending::Commit));
            }
            Self::Forgotten { partitions, .. } => {
                out.list(partitions, |out, (topic, partition)| {
                    out.text(topic);
                    out.put(partition.to_le_bytes());
                });
            }
            Self::Gone { .. } => {}
        }
    }

    /// Decodes a record.
    pub fn decode(tag: u8, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, what(tag)?);
        let record = match tag {
            GROUP => Self::Group(snapshot(&mut rest)?),
            COMMITTED => Self::Committed(marks(&mut rest)?),
            PENDING => Self::Pending {
                producer: ProducerId(rest.i64()?),
                marks: marks(&mut rest)?,
            },
            ENDED => Self::Ended {
                group: rest.text()?.into(),
                producer: ProducerId(rest.i64()?),
                ending: match rest.flag()? {
                    false => Ending::Abort,
                    true => Ending::Commit,
                },
            },
            FORGOTTEN => Self::Forgotten {
                group: rest.text()?.into(),
                partitions: rest.list(|rest| Ok((rest.text()?.into(), rest.u32()?)))?,
            },
            _ => Self::Gone {
                group: rest.text()?.into(),
            },
        };
        rest.end()?;
        Ok(record)
    }
}

fn what(tag: u8) -> Result<&'static str, Malformed> {
    Ok(match tag {
        GROUP => "state of a consumer group",
        COMMITTED => "commit of a consumer group",
        PENDING => "commit in a transaction of a consumer group",
        ENDED => "end of a transaction of a consumer group",
        FORGOTTEN => "list of forgotten offsets of a consumer group",
        GONE => "end of a consumer group",
        _ => {
            return Err(Malformed {
                what: "record of an unknown kind of a consumer group",
            });
        }
    })
}

fn put_snapshot(snapshot: &Snapshot, out: &mut Vec<u8>) {
    out.put(snapshot.since_ms.to_le_bytes());
    out.put(snapshot.generation.to_le_bytes());
    out.text(&snapshot.protocol_type);
    out.name(snapshot.protocol.as_deref());
    out.name(snapshot.leader.as_deref());
    out.list(&snapshot.members, |out, (member, profile)| {
        out.text(member);
        put_profile(profile, out);
    });
}

fn snapshot(rest: &mut Rest<'_>) -> Result<Snapshot, Malformed> {
    Ok(Snapshot {
        group: rest.text()?.into(),
        since_ms: rest.u64()?,
        generation: rest.i32()?,
        protocol_type: rest.text()?.into(),
        protocol: rest.name()?.map(Box::from),
        leader: rest.name()?.map(Arc::from),
        members: rest.list(|rest| Ok((rest.text()?.into(), profile(rest)?)))?,
    })
}

fn put_profile(profile: &Profile, out: &mut Vec<u8>) {
    out.name(profile.instance.as_deref());
    out.text(&profile.client_id);
    out.text(&profile.client_host);
    out.put(profile.session_timeout_ms.to_le_bytes());
    out.put(profile.rebalance_timeout_ms.to_le_bytes());
    out.list(&profile.protocols, |out, it| {
        out.text(&it.name);
        out.bytes(&it.metadata);
    });
    out.push(u8::from(profile.topics.is_some()));
    let topics = profile.topics.as_deref().unwrap_or_default();
    out.list(topics, |out, topic| out.text(topic));
    out.bytes(&profile.assignment);
}

fn profile(rest: &mut Rest<'_>) -> Result<Profile, Malformed> {
    Ok(Profile {
        instance: rest.name()?.map(Box::from),
        client_id: rest.text()?.into(),
        client_host: rest.text()?.into(),
        session_timeout_ms: rest.u32()?,
        rebalance_timeout_ms: rest.u32()?,
        protocols: rest.list(|rest| {
            Ok(Protocol {
                name: rest.text()?.into(),
                metadata: rest.bytes()?.into(),
            })
        })?,
        topics: {
            let is_known = rest.flag()?;
            let topics = rest.list(|rest| Ok(Box::from(rest.text()?)))?;
            is_known.then_some(topics)
        },
        assignment: rest.bytes()?.into(),
    })
}

fn put_marks(marks: &Marks, out: &mut Vec<u8>) {
    out.put(marks.committed_ms.to_le_bytes());
    out.put(marks.expires_ms.unwrap_or(u64::MAX).to_le_bytes());
    out.list(&marks.marks, |out, mark| {
        out.text(&mark.topic);
        out.put(mark.partition.to_le_bytes());
        out.put(mark.offset.to_le_bytes());
        out.put(mark.leader_epoch.to_le_bytes());
        out.text(&mark.metadata);
    });
}

fn marks(rest: &mut Rest<'_>) -> Result<Marks, Malformed> {
    Ok(Marks {
        group: rest.text()?.into(),
        committed_ms: rest.u64()?,
        expires_ms: match rest.u64()? {
            u64::MAX => None,
            at_ms => Some(at_ms),
        },
        marks: rest.list(|rest| {
            Ok(MarkKept {
                topic: rest.text()?.into(),
                partition: rest.u32()?,
                offset: rest.i64()?,
                leader_epoch: rest.i32()?,
                metadata: rest.text()?.into(),
            })
        })?,
    })
}

#[cfg(test)]
mod tests;
