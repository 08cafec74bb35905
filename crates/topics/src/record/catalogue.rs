//! The record of a topic.

use super::Malformed;
use crate::bytes::{Put, Rest};
use crate::catalogue::Topic;
use crate::config::{Alter, Config, Key};
use crate::ids::TopicId;
use crate::names::check_name;

impl Topic {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put(self.id.0);
        out.text(&self.name);
        out.put(self.partitions.to_le_bytes());
        out.put(self.created_ms.to_le_bytes());
        let set = self.config.set();
        out.count(set.len());
        for (key, value) in set {
            out.push(key as u8);
            out.text(value);
        }
    }

    /// Decodes the record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "topic of a topic");
        let mut topic = Self {
            id: TopicId(rest.array()?),
            name: rest.text()?.to_owned(),
            partitions: rest.u32()?,
            created_ms: rest.i64()?,
            config: Config::default(),
        };
        check_name(&topic.name).map_err(|_| rest.malformed())?;
        rest.each(|rest| {
            let key = Key::from_u8(rest.u8()?).ok_or(rest.malformed())?;
            let set = topic.config.alter(key, Alter::Set(rest.text()?));
            set.map_err(|_| rest.malformed())
        })?;
        rest.end()?;
        Ok(topic)
    }
}
