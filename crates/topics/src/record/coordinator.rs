//! The records of transactions and producer ids.

use std::collections::BTreeSet;

use super::Malformed;
use crate::bytes::{Put, Rest};
use crate::coordinator::{Participant, State, Transaction};
use crate::ids::{ProducerId, TopicId};
use crate::producer_ids::Reserved;

const PARTITION: u8 = 1;
const GROUP: u8 = 2;
const NO_PRODUCER: i64 = -1;

impl Transaction {
    /// Appends the record.
    ///
    /// # Panics
    /// If a name is longer than 65,535 bytes, which no request can contain.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.text(&self.name);
        out.put(self.producer.0.to_le_bytes());
        out.put(self.epoch.to_le_bytes());
        let last = self.last_producer.map_or(NO_PRODUCER, |it| it.0);
        out.put(last.to_le_bytes());
        out.put(self.last_epoch.to_le_bytes());
        out.put(self.timeout_ms.to_le_bytes());
        out.push(self.state as u8);
        out.put(self.started_ms.to_le_bytes());
        out.put(self.updated_ms.to_le_bytes());
        out.count(self.participants.len());
        for participant in &self.participants {
            match participant {
                Participant::Partition { topic, index } => {
                    out.push(PARTITION);
                    out.put(topic.0);
                    out.put(index.to_le_bytes());
                }
                Participant::Group(group) => {
                    out.push(GROUP);
                    out.text(group);
                }
            }
        }
    }

    /// Decodes the record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "transaction of a topic");
        let mut transaction = Self {
            name: rest.text()?.to_owned(),
            producer: ProducerId(rest.i64()?),
            epoch: rest.i16()?,
            last_producer: Some(rest.i64()?)
                .filter(|it| *it != NO_PRODUCER)
                .map(ProducerId),
            last_epoch: rest.i16()?,
            timeout_ms: rest.i32()?,
            state: State::from_u8(rest.u8()?).ok_or(rest.malformed())?,
            started_ms: rest.i64()?,
            updated_ms: rest.i64()?,
            participants: BTreeSet::new(),
        };
        rest.each(|rest| {
            let participant = participant(rest)?;
            transaction.participants.insert(participant);
            Ok(())
        })?;
        rest.end()?;
        Ok(transaction)
    }
}

fn participant(rest: &mut Rest<'_>) -> Result<Participant, Malformed> {
    match rest.u8()? {
        PARTITION => Ok(Participant::Partition {
            topic: TopicId(rest.array()?),
            index: rest.u32()?,
        }),
        GROUP => Ok(Participant::Group(rest.text()?.to_owned())),
        _ => Err(rest.malformed()),
    }
}

impl Reserved {
    /// Returns the record.
    pub fn encode(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// Decodes the record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "reservation of producer ids of a topic");
        let reserved = Self(rest.i64()?);
        rest.end()?;
        Ok(reserved)
    }
}
