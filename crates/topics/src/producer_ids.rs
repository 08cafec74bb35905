//! Producer ids, reserved in blocks so that not every id needs a write.

use crate::ids::ProducerId;

/// The number of ids that are reserved at once.
const BLOCK: i64 = 1000;

/// The source of producer ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerIds {
    next: i64,
    reserved: i64,
}

/// A reservation: all ids before this one may be in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved(pub i64);

/// An unused producer id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fresh {
    /// The id.
    pub id: ProducerId,
    /// A reservation that has to be durable before this id and the following ones are used.
    pub reserve: Option<Reserved>,
}

/// All 2⁶³ ids are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are no more ids for producers")]
pub struct Exhausted;

impl ProducerIds {
    /// Returns the next id. The reservation that it returns counts as made.
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

    /// Applies a reservation from before a restart, in any order.
    pub fn restore(&mut self, reserved: Reserved) {
        self.reserved = self.reserved.max(reserved.0);
        self.next = self.reserved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn producer_ids_are_unique_across_restarts() {
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
    fn producer_ids_are_exhausted_at_the_maximum() {
        let mut ids = ProducerIds::default();
        ids.restore(Reserved(i64::MAX - 5));
        assert_eq!(ids.take(), Err(Exhausted));
    }
}
