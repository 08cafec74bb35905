//! Lookup of messages by id, to recognize retries.

use smallvec::SmallVec;

use super::Conversation;
use crate::decision::{Decision, Lookup, MessageSeq, Plan, Refusal};
use crate::ids::{MESSAGES_MAX, id_hash};
use crate::message::NewMessage;
use crate::record::MessageView;
use crate::state::Lifecycle;

/// The result of a search for the message with an id.
enum SearchResult<'a, R> {
    At(u64, R),
    Nowhere,
    /// Undecided until these messages are read; if the list is empty, until more ids are read.
    Unknown(&'a [u64]),
}

impl Conversation {
    /// Looks up the message with an id. `stored` returns the record of a message if it is at hand.
    pub fn look_up<R: AsRef<[u8]>>(
        &self,
        id: &str,
        mut stored: impl FnMut(u64) -> Option<R>,
    ) -> Result<Lookup, Refusal> {
        let mut unread = Vec::new();
        Ok(match self.find(id, &mut stored, &mut unread)? {
            SearchResult::At(seq, _) => Lookup::At(seq),
            SearchResult::Nowhere => Lookup::Nowhere,
            SearchResult::Unknown([]) => Lookup::Learn(self.start..self.ids.first()),
            SearchResult::Unknown(unread) => Lookup::Read(unread.to_vec()),
        })
    }

    /// Determines the existing or new sequence number of each message of a batch.
    pub(super) fn assign_numbers<R: AsRef<[u8]>>(
        &self,
        batch: &[NewMessage<'_>],
        mut stored: impl FnMut(u64) -> Option<R>,
    ) -> Result<Decision, Refusal> {
        match self.state.lifecycle {
            Lifecycle::Open | Lifecycle::Archived => {}
            Lifecycle::Copying => return Err(Refusal::Copying),
            Lifecycle::Erased => return Err(Refusal::Gone),
        }
        let mut places: SmallVec<[MessageSeq; 1]> = SmallVec::with_capacity(batch.len());
        let mut head = self.head;
        let mut unread = Vec::new();
        let mut is_unknown = false;
        for (index, message) in batch.iter().enumerate() {
            let found = match message.id {
                Some(id) => self.find(id, &mut stored, &mut unread)?,
                None => SearchResult::Nowhere,
            };
            let known = match found {
                SearchResult::At(seq, record) => {
                    match self.is_retry(record, seq, message, index)? {
                        true => Some(seq),
                        false => return Err(Refusal::IdReused { index, seq }),
                    }
                }
                SearchResult::Nowhere => earlier(batch, &places, index)?,
                SearchResult::Unknown(_) => {
                    is_unknown = true;
                    None
                }
            };
            places.push(known.map_or_else(
                || {
                    head += 1;
                    MessageSeq::New(head)
                },
                MessageSeq::Known,
            ));
        }
        if !unread.is_empty() {
            unread.sort_unstable();
            unread.dedup();
            Ok(Decision::Read(unread))
        } else if is_unknown {
            Ok(Decision::Learn(self.start..self.ids.first()))
        } else if head > MESSAGES_MAX {
            Err(Refusal::Full)
        } else {
            Ok(Decision::Append(Plan { places, head }))
        }
    }

    /// Returns whether a message is a retry of the stored one with its id.
    fn is_retry(
        &self,
        record: impl AsRef<[u8]>,
        seq: u64,
        message: &NewMessage<'_>,
        index: usize,
    ) -> Result<bool, Refusal> {
        let view = MessageView::decode(record.as_ref());
        let view = view.map_err(|_| Refusal::Damaged { seq })?;
        match view.retraction {
            None if self.state.retracted.contains(seq) => Err(Refusal::IdRetracted { index, seq }),
            _ => Ok(view.is_retried_by(message)),
        }
    }

    /// Searches an id among the retained messages. Adds the messages that must be read first to
    /// `unread`.
    fn find<'a, R: AsRef<[u8]>>(
        &self,
        id: &str,
        stored: &mut impl FnMut(u64) -> Option<R>,
        unread: &'a mut Vec<u64>,
    ) -> Result<SearchResult<'a, R>, Refusal> {
        let before = unread.len();
        for seq in self.ids.find(id_hash(id)) {
            let Some(record) = stored(seq) else {
                unread.push(seq);
                continue;
            };
            let view = MessageView::decode(record.as_ref());
            if view.map_err(|_| Refusal::Damaged { seq })?.id == id {
                unread.truncate(before);
                return Ok(SearchResult::At(seq, record));
            }
        }
        let is_known = unread.len() == before && self.ids.first() <= self.start;
        Ok(match is_known {
            true => SearchResult::Nowhere,
            false => SearchResult::Unknown(&unread[before..]),
        })
    }
}

/// Searches a message among the earlier messages of its batch.
fn earlier(
    batch: &[NewMessage<'_>],
    places: &[MessageSeq],
    index: usize,
) -> Result<Option<u64>, Refusal> {
    let message = &batch[index];
    let same = |it: &&NewMessage<'_>| it.id.is_some() && it.id == message.id;
    let mut before = batch.iter().zip(places);
    let Some(earlier) = before.position(|(it, _)| same(&it)) else {
        return Ok(None);
    };
    let (other, place) = (&batch[earlier], &places[earlier]);
    let is_equal = (other.role, other.from) == (message.role, message.from)
        && (other.parts, other.metadata) == (message.parts, message.metadata);
    match (is_equal, place) {
        (true, place) => Ok(Some(place.seq())),
        (false, MessageSeq::Known(seq)) => Err(Refusal::IdReused { index, seq: *seq }),
        (false, MessageSeq::New(_)) => Err(Refusal::IdRepeated { index, earlier }),
    }
}
