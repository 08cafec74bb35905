//! Answers that wait until what they speak of is durable.
//!
//! They are owned by the task that reads from the connection, in the order of the questions. The
//! task registers its waker for the oldest one's block and for nothing else; when it is woken it
//! answers everything that is durable, in one write.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use journal::{Journal, Status, Ticket as Block};
use model::ErrorCode;
use routing::Ticket;

use super::UNCONFIRMED;
use super::mailbox::Slot;
use super::write::{self, Kept};
use crate::conversations::Refusal;
use crate::later::Later;
use crate::ports::{Failure, Outgoing};

/// What is answered.
pub(crate) enum Answer {
    /// A write is in its mailbox.
    Stored { offset: u64, is_duplicate: bool },
    /// Records are in their stream.
    Appended { first: u64, next: u64 },
    /// The stream ends elsewhere.
    Conflict { next: u64 },
    /// Messages are in their conversation.
    Messages {
        first: u64,
        next: u64,
        deduplicated: u32,
        made: Vec<String>,
    },
    /// They are not, for a reason that rests on what was there.
    Refused(Refusal),
    /// A write is not in its mailbox.
    Unwritten(write::Refusal),
}

/// An answer that waits.
pub(crate) struct Waiting {
    pub(crate) tag: Ticket,
    /// What must be durable.
    pub(crate) tickets: [Option<Block>; 2],
    pub(crate) answer: Answer,
    /// The mailbox that may go on then.
    pub(crate) slot: Option<Arc<Slot>>,
}

/// Answers of one connection that may wait, and bytes that they speak of; above either the node
/// does not read from it.
const WAITING_MAX: usize = 8_192;
const WAITING_SIZE_MAX: u64 = 8 << 20;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Answers {
    /// Each with the bytes that it speaks of.
    waiting: VecDeque<(Entry, u64)>,
    waiting_size: u64,
    /// What the waker is registered for.
    watched: Option<(Block, Waker)>,
}

enum Entry {
    Known(Waiting),
    /// What it will be is known when a mailbox is loaded.
    Later(Ticket, Arc<Later<Kept>>),
}

/// An answer that is due.
pub(super) struct Due {
    pub(super) waiting: Waiting,
    pub(super) is_durable: bool,
}

impl Answers {
    /// Adds the newest, which speaks of that many bytes.
    pub(crate) fn push(&mut self, waiting: Waiting, size: u64) {
        self.waiting.push_back((Entry::Known(waiting), size));
        self.waiting_size += size;
    }

    /// Adds the newest, of a write that waits for its mailbox.
    pub(super) fn push_later(&mut self, tag: Ticket, later: Arc<Later<Kept>>, size: u64) {
        self.waiting.push_back((Entry::Later(tag, later), size));
        self.waiting_size += size;
    }

    /// Whether so much waits that no more should be asked.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX || self.waiting_size >= WAITING_SIZE_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest answer, if it is due; else the waker is woken once it may be.
    pub(super) fn next(&mut self, journal: &Journal, waker: &Waker) -> Option<Due> {
        let (entry, _) = self.waiting.front_mut()?;
        if let Entry::Later(tag, later) = entry {
            let tag = *tag;
            *entry = Entry::Known(match later.take(waker)? {
                Ok(taken) => taken.waiting(tag),
                Err(refusal) => Waiting {
                    tag,
                    tickets: [None, None],
                    answer: Answer::Unwritten(refusal),
                    slot: None,
                },
            });
        }
        let Entry::Known(oldest) = entry else {
            return None;
        };
        let mut is_durable = true;
        for block in oldest.tickets.into_iter().flatten() {
            let status = match journal.status(block) {
                Status::Pending => self.watch(journal, block, waker),
                status => status,
            };
            match status {
                Status::Pending => return None,
                Status::Durable => {}
                Status::Failed => is_durable = false,
            }
        }
        let Some((Entry::Known(waiting), size)) = self.waiting.pop_front() else {
            return None;
        };
        self.waiting_size -= size;
        Some(Due {
            waiting,
            is_durable,
        })
    }

    /// Has the waker woken for the block, if it is not already to be.
    fn watch(&mut self, journal: &Journal, block: Block, waker: &Waker) -> Status {
        if let Some((watched, known)) = &self.watched
            && *watched == block
            && known.will_wake(waker)
        {
            return Status::Pending;
        }
        self.watched = Some((block, waker.clone()));
        journal.notify(block, waker)
    }
}

impl Due {
    /// As the client is told.
    pub(super) fn outgoing<'a>(
        &'a self,
        details: &'a mut [u8; 8],
        text: &'a mut String,
    ) -> Outgoing<'a> {
        let tag = self.waiting.tag;
        if !self.is_durable {
            let failure = Failure::new(ErrorCode::Unconfirmed, UNCONFIRMED).after_sending();
            return Outgoing::Failure {
                tag: Some(tag),
                failure,
            };
        }
        match &self.waiting.answer {
            Answer::Stored {
                offset,
                is_duplicate,
            } => Outgoing::Stored {
                tag,
                offset: *offset,
                is_duplicate: *is_duplicate,
            },
            Answer::Appended { first, next } => Outgoing::Appended {
                tag,
                first: *first,
                next: *next,
            },
            Answer::Messages {
                first,
                next,
                deduplicated,
                made,
            } => Outgoing::MessagesAppended {
                tag,
                first: *first,
                next: *next,
                deduplicated: *deduplicated,
                made,
            },
            Answer::Refused(refusal) => Outgoing::Failure {
                tag: Some(tag),
                failure: refusal.as_failure(details),
            },
            Answer::Unwritten(refusal) => Outgoing::Failure {
                tag: Some(tag),
                failure: refusal.as_failure(),
            },
            Answer::Conflict { next } => {
                *details = next.to_le_bytes();
                *text = format!("the stream ends at {next}");
                let failure = Failure {
                    details,
                    ..Failure::new(ErrorCode::Conflict, text)
                };
                Outgoing::Failure {
                    tag: Some(tag),
                    failure,
                }
            }
        }
    }
}
