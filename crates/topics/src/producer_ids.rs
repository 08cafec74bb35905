//! Ids for producers, reserved in blocks so that not each of them is written.

use crate::ids::ProducerId;

/// Ids that are reserved at once.
const BLOCK: i64 = 1000;

/// Where the ids come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerIds {
    next: i64,
    reserved: i64,
}

/// All ids before this one may have been given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved(pub i64);

/// An id that nobody else has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fresh {
    /// The id.
    pub id: ProducerId,
    /// What has to be durable before it is given away; then that is so for those behind it too.
    pub reserve: Option<Reserved>,
}

/// 2⁶³ were given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are no more ids for producers")]
pub struct Exhausted;

impl ProducerIds {
    /// The next id. What it says is to be reserved is taken as reserved.
    pub fn take(&mut self) -> Result<Fresh, Exhausted> {
        let id = ProducerId(self.next);
        let mut reserve = None;
        if self.next >= self.reserved {
            self.reserved = self.next.checked_add(BLOCK).ok_or(Exhausted)?;
            reserve = Some(Reserved(self.reserved));
        }
        self.next += 1;
        Ok(Fresh { id, reserve })
    }

    /// Takes what was reserved before a start, in any order.
    pub fn restore(&mut self, reserved: Reserved) {
        self.reserved = self.reserved.max(reserved.0);
        self.next = self.reserved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_given_once_however_often_the_node_starts() {
        let mut ids = ProducerIds::default();
        let mut log = Vec::new();
        let mut newest = -1;
        for life in 0..3 {
            for _ in 0..1500 {
                let fresh = ids.take().unwrap();
                assert!(fresh.id.0 > newest, "life {life}");
                newest = fresh.id.0;
                log.extend(fresh.reserve);
            }
            ids = ProducerIds::default();
            for reserved in &log {
                ids.restore(*reserved);
            }
        }
        assert_eq!(log.len(), 6);
    }

    #[test]
    fn there_is_an_end() {
        let mut ids = ProducerIds::default();
        ids.restore(Reserved(i64::MAX - 5));
        assert_eq!(ids.take(), Err(Exhausted));
    }
}
